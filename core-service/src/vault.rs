//! Seals secrets at rest: AES-256-GCM-SIV (RFC 8452) under keys derived from the operator's
//! master key by HKDF-SHA256 (RFC 5869), one a purpose.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    hkdf,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use process::secret_file;
use sha2::{Digest, Sha256};

/// What is sealed. Something sealed for one purpose can't be opened for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    SigningKey,
    WebhookSecret,
    RetailPrice,
    KeptAnswer,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the master key {path} is not there: create it with `core-service bootstrap`, or restore it from your backup"
    )]
    Missing { path: PathBuf },
    #[error("cannot use the master key")]
    File(#[from] secret_file::Error),
    #[error("cannot create the master key {path}")]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "the master key {path} is not 32 bytes of Base64; restore it from your backup, nothing sealed with it can be read without it"
    )]
    Malformed { path: PathBuf },
    #[error("sealed with another master key, or altered")]
    Unsealable,
}

pub(crate) struct Vault {
    master: hkdf::Prk,
    /// Says which master key sealed something: the first bytes of its SHA-256.
    key_id: [u8; KEY_ID],
    signing_key: RandomizedNonceKey,
    webhook_secret: RandomizedNonceKey,
    retail_price: RandomizedNonceKey,
    kept_answer: RandomizedNonceKey,
}

const KEY: usize = 32;
const KEY_ID: usize = 4;

impl Vault {
    /// Opens the vault with the master key in a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = secret_file::read(path).map_err(|error| match error {
            secret_file::Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Error::Missing {
                    path: path.to_owned(),
                }
            }
            error => error.into(),
        })?;
        let key = BASE64_STANDARD
            .decode(text.trim())
            .ok()
            .and_then(|bytes| <[u8; KEY]>::try_from(bytes).ok())
            .ok_or_else(|| Error::Malformed {
                path: path.to_owned(),
            })?;
        Ok(Self::new(&key))
    }

    /// As [`Vault::open`], with a new master key if there is no file, readable by its owner
    /// alone.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, Error> {
        create_master_key(path).map_err(|source| Error::Create {
            path: path.to_owned(),
            source,
        })?;
        Self::open(path)
    }

    fn new(key: &[u8; KEY]) -> Self {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"delivery").extract(key);
        let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(key));
        let sealing_key = |purpose: &[u8]| {
            RandomizedNonceKey::new(&AES_256_GCM_SIV, &expand(&master, purpose))
                .expect("a key of 32 bytes is what AES-256 takes")
        };
        Self {
            key_id: [a, b, c, d],
            signing_key: sealing_key(b"signing key"),
            webhook_secret: sealing_key(b"webhook secret"),
            retail_price: sealing_key(b"retail price"),
            kept_answer: sealing_key(b"kept answer"),
            master,
        }
    }

    /// Bytes that depend on the master key and a label only.
    pub(crate) fn derive(&self, label: &str) -> [u8; KEY] {
        expand(&self.master, label.as_bytes())
    }

    /// Seals bytes: key id, nonce, ciphertext and tag. `context` must be given again to unseal;
    /// it ties the sealed bytes to their row.
    pub(crate) fn seal(&self, purpose: Purpose, context: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut text = plain.to_vec();
        let nonce = self
            .key(purpose)
            .seal_in_place_append_tag(Aad::from(context), &mut text)
            .expect("what is sealed here is far shorter than the cipher's limit");
        [&self.key_id[..], nonce.as_ref(), &text].concat()
    }

    pub(crate) fn unseal(
        &self,
        purpose: Purpose,
        context: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let (key_id, rest) = sealed.split_at_checked(KEY_ID).ok_or(Error::Unsealable)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN).ok_or(Error::Unsealable)?;
        if key_id != self.key_id {
            return Err(Error::Unsealable);
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Error::Unsealable)?;
        let mut text = text.to_vec();
        let length = self
            .key(purpose)
            .open_in_place(nonce, Aad::from(context), &mut text)
            .map_err(|_| Error::Unsealable)?
            .len();
        text.truncate(length);
        Ok(text)
    }

    /// Whether something was sealed with this master key, by what it says of itself.
    pub(crate) fn has_sealed(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.key_id)
    }

    fn key(&self, purpose: Purpose) -> &RandomizedNonceKey {
        match purpose {
            Purpose::SigningKey => &self.signing_key,
            Purpose::WebhookSecret => &self.webhook_secret,
            Purpose::RetailPrice => &self.retail_price,
            Purpose::KeptAnswer => &self.kept_answer,
        }
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

/// Writes a new key beside its place, and then puts it there whole, unless there is one: a
/// crash leaves no half a key, and what is sealed is never flushed before its key.
fn create_master_key(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let draft = path.with_extension(format!("key.{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    let key = BASE64_STANDARD.encode(process::random::bytes::<KEY>());
    writeln!(file, "{key}")?;
    file.sync_all()?;
    let placed = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    match placed {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::File::open(directory)?.sync_all(),
    }
}

fn expand(master: &hkdf::Prk, label: &[u8]) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    master
        .expand(&[label], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut bytes))
        .expect("32 bytes are within what HKDF-SHA256 gives");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_for_its_purpose_and_context_only() {
        let vault = Vault::new(&[7; KEY]);
        let sealed = vault.seal(Purpose::WebhookSecret, b"row 1", b"secret");

        let opened = vault.unseal(Purpose::WebhookSecret, b"row 1", &sealed);
        assert_eq!(opened.unwrap(), b"secret");
        assert!(
            vault
                .unseal(Purpose::RetailPrice, b"row 1", &sealed)
                .is_err()
        );
        assert!(
            vault
                .unseal(Purpose::WebhookSecret, b"row 2", &sealed)
                .is_err()
        );
        let other = Vault::new(&[8; KEY]);
        assert!(
            other
                .unseal(Purpose::WebhookSecret, b"row 1", &sealed)
                .is_err()
        );
    }

    #[test]
    fn whatever_is_altered_or_cut_is_refused() {
        let vault = Vault::new(&[7; KEY]);
        let sealed = vault.seal(Purpose::RetailPrice, b"", b"499 EUR");

        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(vault.unseal(Purpose::RetailPrice, b"", &altered).is_err());
            assert!(
                vault
                    .unseal(Purpose::RetailPrice, b"", &sealed[..at])
                    .is_err()
            );
        }
    }

    #[test]
    fn a_master_key_is_created_once_and_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.key");

        assert!(matches!(Vault::open(&path), Err(Error::Missing { .. })));
        let first = Vault::open_or_create(&path).unwrap().derive("label");
        let again = Vault::open_or_create(&path).unwrap().derive("label");

        assert_eq!(first, again);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "not a key").unwrap();
        assert!(matches!(Vault::open(&path), Err(Error::Malformed { .. })));
    }
}
