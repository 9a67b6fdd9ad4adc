//! Files with secrets: small, and nobody else's to read.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Far beyond any key, password or certificate chain; a device file has no end.
const LARGEST: u64 = 1024 * 1024;

/// Permissions of the group's members to write and of everybody else.
const NOT_OWN: u32 = 0o077;

/// What of them a file of root's must not have: it may be given to a group to read.
const NOT_ROOTS: u32 = 0o037;

/// Why a secret can't be taken from a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{path} may be read by others (mode {mode:04o}), and it holds a secret: chmod 600 {path}"
    )]
    Exposed { path: PathBuf, mode: u32 },
}

/// Reads the text of a file that others may not read. As `PostgreSQL` has it for its keys: mode
/// 0600 or less, or 0640 or less if it is root's.
pub fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let refused = if metadata.uid() == 0 {
        NOT_ROOTS
    } else {
        NOT_OWN
    };
    if metadata.mode() & refused != 0 {
        return Err(Error::Exposed {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    let mut text = String::new();
    file.take(LARGEST)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt as _,
    };

    use super::*;

    #[test]
    fn a_secret_is_read_only_where_others_cannot_read_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "secret\n").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            read(file.path())
        };

        for right in [0o600, 0o400] {
            assert_eq!(with_mode(right).unwrap(), "secret\n");
        }
        for wrong in [0o644, 0o604, 0o660, 0o620] {
            let error = with_mode(wrong).unwrap_err().to_string();
            let path = file.path().display();
            assert_eq!(
                error,
                format!(
                    "{path} may be read by others (mode {wrong:04o}), and it holds a secret: chmod 600 {path}"
                )
            );
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("/nowhere/secret")).unwrap_err();

        assert_eq!(error.to_string(), "cannot read /nowhere/secret");
    }
}
