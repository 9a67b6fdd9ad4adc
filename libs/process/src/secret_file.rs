//! Reads files with secrets, if other users cannot read them.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

/// The maximum of bytes read from a file; larger than any key, password or certificate chain.
const MAX_SIZE: u64 = 1024 * 1024;

/// Permission bits that a file must not have: any for the group or others.
const FORBIDDEN: u32 = 0o077;

/// The same for a file owned by root, which a group may read.
const FORBIDDEN_FOR_ROOT: u32 = 0o037;

/// Why a secret cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{path} contains a secret and is accessible to other users (mode {mode:04o}): run chmod 600 {path}"
    )]
    Exposed { path: PathBuf, mode: u32 },
}

/// Reads a text file. Its mode must be 0600 or stricter, or 0640 or stricter if root owns it: the
/// rule of `PostgreSQL` for key files. The text is overwritten when it is dropped.
pub fn read(path: &Path) -> Result<Zeroizing<String>, Error> {
    let read_error = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    let forbidden = if metadata.uid() == 0 {
        FORBIDDEN_FOR_ROOT
    } else {
        FORBIDDEN
    };
    if metadata.mode() & forbidden != 0 {
        return Err(Error::Exposed {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_SIZE)
        .read_to_string(&mut text)
        .map_err(read_error)?;
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
    fn a_secret_is_read_only_if_other_users_cannot_access_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "secret\n").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            read(file.path())
        };

        for right in [0o600, 0o400] {
            assert_eq!(*with_mode(right).unwrap(), "secret\n");
        }
        for wrong in [0o644, 0o604, 0o660, 0o620] {
            let error = with_mode(wrong).unwrap_err().to_string();
            let path = file.path().display();
            assert_eq!(
                error,
                format!(
                    "{path} contains a secret and is accessible to other users (mode {wrong:04o}): run chmod 600 {path}"
                )
            );
        }
    }

    #[test]
    fn an_error_names_a_missing_file() {
        let error = read(Path::new("/nowhere/secret")).unwrap_err();

        assert_eq!(error.to_string(), "cannot read /nowhere/secret");
    }
}
