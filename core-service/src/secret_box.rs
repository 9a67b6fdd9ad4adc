//! Encrypts secrets at rest: AES-256-GCM-SIV (RFC 8452) with one key per purpose, derived from the
//! operator's master key by HKDF-SHA256 (RFC 5869).

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    hkdf,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use process::secret_file;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

/// The kind of a secret. A ciphertext of one purpose cannot be decrypted for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    SigningKey,
    WebhookSecret,
    RetailPrice,
    StoredResponse,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the master key {path} does not exist: create it with `core-service bootstrap`, or restore it from your backup"
    )]
    Missing { path: PathBuf },
    #[error("cannot use the master key")]
    File(#[from] secret_file::Error),
    #[error("cannot create the master key {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "the master key {path} is not 32 bytes of Base64; restore it from your backup, because secrets encrypted with it cannot be decrypted without it"
    )]
    Malformed { path: PathBuf },
    #[error("encrypted with another master key, or altered")]
    Undecryptable,
}

pub(crate) struct SecretBox {
    master: hkdf::Prk,
    /// Prefix of all ciphertexts: the first bytes of the SHA-256 of the master key.
    key_id: [u8; KEY_ID_LENGTH],
    signing_key: RandomizedNonceKey,
    webhook_secret: RandomizedNonceKey,
    retail_price: RandomizedNonceKey,
    stored_response: RandomizedNonceKey,
}

const KEY_LENGTH: usize = 32;
const KEY_ID_LENGTH: usize = 4;

impl SecretBox {
    /// Opens a secret box with the master key in a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = secret_file::read(path).map_err(|error| match error {
            secret_file::Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Error::Missing {
                    path: path.to_owned(),
                }
            }
            error => error.into(),
        })?;
        let key = BASE64_STANDARD.decode(text.trim()).map(Zeroizing::new).ok();
        let key = key
            .as_deref()
            .and_then(|bytes| <&[u8; KEY_LENGTH]>::try_from(bytes.as_slice()).ok())
            .ok_or_else(|| Error::Malformed {
                path: path.to_owned(),
            })?;
        Ok(Self::new(key))
    }

    /// As [`SecretBox::open`]; creates the file with a new master key, readable only by its owner, if
    /// it does not exist.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, Error> {
        create_master_key(path).map_err(|source| Error::Create {
            path: path.to_owned(),
            source,
        })?;
        Self::open(path)
    }

    fn new(key: &[u8; KEY_LENGTH]) -> Self {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"delivery").extract(key);
        let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(key));
        let purpose_key = |purpose: &[u8]| {
            RandomizedNonceKey::new(&AES_256_GCM_SIV, &expand(&master, purpose))
                .expect("an AES-256 key has 32 bytes")
        };
        // The labels are part of the derived keys: changing one invalidates stored ciphertexts.
        Self {
            key_id: [a, b, c, d],
            signing_key: purpose_key(b"signing key"),
            webhook_secret: purpose_key(b"webhook secret"),
            retail_price: purpose_key(b"retail price"),
            stored_response: purpose_key(b"kept answer"),
            master,
        }
    }

    /// Derives bytes from the master key and a label.
    pub(crate) fn derive(&self, label: &str) -> [u8; KEY_LENGTH] {
        expand(&self.master, label.as_bytes())
    }

    /// Encrypts bytes; the result is key id, nonce, ciphertext and tag. Decryption requires the same
    /// `context`, which ties the result to its row.
    pub(crate) fn encrypt(&self, purpose: Purpose, context: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let mut text = plaintext.to_vec();
        let nonce = self
            .key(purpose)
            .seal_in_place_append_tag(Aad::from(context), &mut text)
            .expect("secrets are far below the length limit of the cipher");
        [&self.key_id[..], nonce.as_ref(), &text].concat()
    }

    pub(crate) fn decrypt(
        &self,
        purpose: Purpose,
        context: &[u8],
        encrypted: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let (key_id, rest) = encrypted
            .split_at_checked(KEY_ID_LENGTH)
            .ok_or(Error::Undecryptable)?;
        let (nonce, text) = rest
            .split_at_checked(NONCE_LEN)
            .ok_or(Error::Undecryptable)?;
        if key_id != self.key_id {
            return Err(Error::Undecryptable);
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Error::Undecryptable)?;
        let mut text = Zeroizing::new(text.to_vec());
        let length = self
            .key(purpose)
            .open_in_place(nonce, Aad::from(context), &mut text)
            .map_err(|_| Error::Undecryptable)?
            .len();
        text.truncate(length);
        Ok(text)
    }

    /// Whether bytes were encrypted with this master key, by their key id.
    pub(crate) fn matches_key(&self, encrypted: &[u8]) -> bool {
        encrypted.starts_with(&self.key_id)
    }

    fn key(&self, purpose: Purpose) -> &RandomizedNonceKey {
        match purpose {
            Purpose::SigningKey => &self.signing_key,
            Purpose::WebhookSecret => &self.webhook_secret,
            Purpose::RetailPrice => &self.retail_price,
            Purpose::StoredResponse => &self.stored_response,
        }
    }
}

impl std::fmt::Debug for SecretBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretBox")
    }
}

/// Writes a new key to a temporary file and links it to `path` unless that exists, so that a crash
/// leaves no partial key. The key is flushed before any secret is encrypted with it.
fn create_master_key(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // A new file with a random name and mode 0600: never one that somebody else has put there.
    let mut file = NamedTempFile::new_in(directory)?;
    let bytes = Zeroizing::new(process::random::bytes::<KEY_LENGTH>());
    let key = Zeroizing::new(BASE64_STANDARD.encode(*bytes));
    writeln!(file, "{}", *key)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => fs::File::open(directory)?.sync_all(),
    }
}

fn expand(master: &hkdf::Prk, label: &[u8]) -> [u8; KEY_LENGTH] {
    let mut bytes = [0; KEY_LENGTH];
    master
        .expand(&[label], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut bytes))
        .expect("HKDF-SHA256 can derive 32 bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_decrypted_only_for_its_purpose_and_context() {
        let secret_box = SecretBox::new(&[7; KEY_LENGTH]);
        let encrypted = secret_box.encrypt(Purpose::WebhookSecret, b"row 1", b"secret");

        let decrypted = secret_box.decrypt(Purpose::WebhookSecret, b"row 1", &encrypted);
        assert_eq!(*decrypted.unwrap(), b"secret");
        assert_eq!(format!("{secret_box:?}"), "SecretBox");
        assert!(
            secret_box
                .decrypt(Purpose::RetailPrice, b"row 1", &encrypted)
                .is_err()
        );
        assert!(
            secret_box
                .decrypt(Purpose::WebhookSecret, b"row 2", &encrypted)
                .is_err()
        );
        let other = SecretBox::new(&[8; KEY_LENGTH]);
        assert!(
            other
                .decrypt(Purpose::WebhookSecret, b"row 1", &encrypted)
                .is_err()
        );
    }

    #[test]
    fn altered_and_truncated_ciphertexts_are_rejected() {
        let secret_box = SecretBox::new(&[7; KEY_LENGTH]);
        let encrypted = secret_box.encrypt(Purpose::RetailPrice, b"", b"499 EUR");

        for at in 0..encrypted.len() {
            let mut altered = encrypted.clone();
            altered[at] ^= 1;
            assert!(
                secret_box
                    .decrypt(Purpose::RetailPrice, b"", &altered)
                    .is_err()
            );
            assert!(
                secret_box
                    .decrypt(Purpose::RetailPrice, b"", &encrypted[..at])
                    .is_err()
            );
        }
    }

    #[test]
    fn a_master_key_is_created_once_and_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.key");

        assert!(matches!(SecretBox::open(&path), Err(Error::Missing { .. })));
        let first = SecretBox::open_or_create(&path).unwrap().derive("label");
        let again = SecretBox::open_or_create(&path).unwrap().derive("label");

        assert_eq!(first, again);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(
            SecretBox::open(&path),
            Err(Error::Malformed { .. })
        ));
    }

    #[test]
    fn a_new_master_key_is_not_written_into_a_file_of_somebody_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.key");
        let planted = directory.path().join("planted");
        fs::write(&planted, "").unwrap();
        let guessed = path.with_extension(format!("key.{}", std::process::id()));
        std::os::unix::fs::symlink(&planted, guessed).unwrap();

        SecretBox::open_or_create(&path).unwrap();

        assert_eq!(fs::read_to_string(planted).unwrap(), "");
    }
}
