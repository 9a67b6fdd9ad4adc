//! The checksum at the end of a backup. `SQLite` ignores what follows a database's last page, so
//! that a backup remains a database.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write},
};

use sha2::{Digest as _, Sha256};

const LABEL: &str = "delivery backup, SHA-256 ";

/// Label, hash in hexadecimal, line break.
const LENGTH: usize = LABEL.len() + 64 + 1;

/// Appends the checksum of a file's bytes and flushes the file.
pub(super) fn append(file: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let length = file.metadata()?.len();
    let checksum = copy(file, length, &mut io::sink())?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(checksum.as_bytes())?;
    file.sync_all()
}

/// Copies the bytes before the checksum. Returns whether they have this checksum.
pub(super) fn copy_verified(file: &mut File, target: &mut impl Write) -> io::Result<bool> {
    let trailer = u64::try_from(LENGTH).unwrap_or_default();
    let Some(length) = file.metadata()?.len().checked_sub(trailer) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(0))?;
    let checksum = copy(file, length, target)?;
    let mut found = Vec::with_capacity(LENGTH);
    file.take(trailer).read_to_end(&mut found)?;
    Ok(found == checksum.as_bytes())
}

/// Copies a number of bytes and returns their checksum with its label.
fn copy(file: &mut File, length: u64, target: &mut impl Write) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut rest = file.take(length);
    loop {
        let read = rest.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        target.write_all(&buffer[..read])?;
    }
    let digits = hash.finalize().iter().fold(String::new(), |digits, byte| {
        digits + &format!("{byte:02x}")
    });
    Ok(format!("{LABEL}{digits}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_changed_missing_or_additional_byte_is_noticed() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"pages").unwrap();
        append(&mut file).unwrap();
        let mut whole = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut whole).unwrap();
        let verify = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let mut copied = Vec::new();
            let is_whole = copy_verified(&mut file, &mut copied).unwrap();
            (is_whole, copied)
        };

        assert_eq!(verify(&whole), (true, b"pages".to_vec()));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(!verify(&changed).0, "{at}");
            assert!(!verify(&whole[..at]).0, "{at}");
        }
        assert!(!verify(&[&whole[..], b"\n"].concat()).0);
    }
}
