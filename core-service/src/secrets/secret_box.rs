//! Encrypts secrets at rest: AES-256-GCM-SIV (RFC 8452) with one key per purpose, derived from the
//! operator's master key by HKDF-SHA256 (RFC 5869).

use std::path::{Path, PathBuf};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    hkdf,
};
use process::reloading::Reloading;
use zeroize::Zeroizing;

use crate::secrets::master_keys::{self, KEY_LENGTH, KeyId, MasterKey, MasterKeys};

/// The kind of a secret. A ciphertext of one purpose cannot be decrypted for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    SigningKey,
    WebhookSecret,
    RetailPrice,
    StoredResponse,
    /// A secret of the platform itself.
    PlatformSecret,
}

/// The labels by which the keys of all purposes are derived, in their order. Changing one
/// invalidates stored ciphertexts.
const LABELS: [&str; 5] = [
    "signing key",
    "webhook secret",
    "retail price",
    "kept answer",
    "platform secret",
];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "a secret is encrypted with the master key {id}, which {path} does not contain: add its line to that file, from {path}.removed, another core's file or a backup; the core reads the file again when it changes"
    )]
    UnknownKey { path: PathBuf, id: KeyId },
    #[error("encrypted with another master key, or altered")]
    Undecryptable,
}

/// Encrypts with the current master key and decrypts with all keys of its file, which is read again
/// when it changes.
pub(crate) struct SecretBox {
    path: PathBuf,
    ring: Reloading<Ring, master_keys::Error>,
}

/// The current key first.
struct Ring(Vec<PurposeKeys>);

/// The keys that are derived from a master key.
struct PurposeKeys {
    id: KeyId,
    by_purpose: [RandomizedNonceKey; LABELS.len()],
}

impl SecretBox {
    pub(crate) fn open(path: &Path) -> Result<Self, master_keys::Error> {
        let file = path.to_owned();
        let ring = Reloading::open(vec![path.to_owned()], move || {
            let keys = MasterKeys::read(&file)?;
            master_keys::flush(&file)?;
            Ok(Ring(keys.iter().map(PurposeKeys::derive).collect()))
        })?;
        Ok(Self {
            path: path.to_owned(),
            ring,
        })
    }

    /// Like [`SecretBox::open`]; creates the file with a new master key if it does not exist.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, master_keys::Error> {
        MasterKeys::read_or_create(path)?;
        Self::open(path)
    }

    /// Encrypts bytes; the result is key id, nonce, ciphertext and tag. Decryption requires the
    /// same `context`, which ties the result to its row.
    pub(crate) fn encrypt(&self, purpose: Purpose, context: &[u8], plaintext: &[u8]) -> Vec<u8> {
        self.ring
            .current()
            .current_keys()
            .encrypt(purpose, context, plaintext)
    }

    pub(crate) fn decrypt(
        &self,
        purpose: Purpose,
        context: &[u8],
        encrypted: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.decrypt_with(&self.ring.current(), purpose, context, encrypted)
    }

    /// Encrypts a ciphertext's secret with the current key; `None` if it is already.
    pub(crate) fn reencrypt(
        &self,
        purpose: Purpose,
        context: &[u8],
        encrypted: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let ring = self.ring.current();
        let current = ring.current_keys();
        if current.id.encrypted(encrypted) {
            return Ok(None);
        }
        let plaintext = self.decrypt_with(&ring, purpose, context, encrypted)?;
        Ok(Some(current.encrypt(purpose, context, &plaintext)))
    }

    pub(crate) fn current_key(&self) -> KeyId {
        self.ring.current().current_keys().id
    }

    /// The ids of the master keys, the current one first.
    pub(crate) fn key_ids(&self) -> Vec<KeyId> {
        self.ring.current().0.iter().map(|keys| keys.id).collect()
    }

    fn decrypt_with(
        &self,
        ring: &Ring,
        purpose: Purpose,
        context: &[u8],
        encrypted: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let id = KeyId::of_ciphertext(encrypted).ok_or(Error::Undecryptable)?;
        let Some(keys) = ring.0.iter().find(|keys| keys.id == id) else {
            let path = self.path.clone();
            return Err(Error::UnknownKey { path, id });
        };
        keys.decrypt(purpose, context, &encrypted[KeyId::LENGTH..])
            .ok_or(Error::Undecryptable)
    }
}

impl Ring {
    fn current_keys(&self) -> &PurposeKeys {
        self.0.first().expect("a file has at least one key")
    }
}

impl PurposeKeys {
    fn derive(key: &MasterKey) -> Self {
        let by_purpose = LABELS.map(|label| {
            RandomizedNonceKey::new(&AES_256_GCM_SIV, &*derive(key.bytes(), label))
                .expect("an AES-256 key has 32 bytes")
        });
        Self {
            id: key.id(),
            by_purpose,
        }
    }

    fn encrypt(&self, purpose: Purpose, context: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let mut text = plaintext.to_vec();
        let nonce = self
            .key(purpose)
            .seal_in_place_append_tag(Aad::from(context), &mut text)
            .expect("secrets are far below the length limit of the cipher");
        [&self.id.0[..], nonce.as_ref(), &text].concat()
    }

    /// Decrypts nonce, ciphertext and tag.
    fn decrypt(
        &self,
        purpose: Purpose,
        context: &[u8],
        encrypted: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, text) = encrypted.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = Zeroizing::new(text.to_vec());
        let plaintext = self
            .key(purpose)
            .open_in_place(nonce, Aad::from(context), &mut text);
        let length = plaintext.ok()?.len();
        text.truncate(length);
        Some(text)
    }

    fn key(&self, purpose: Purpose) -> &RandomizedNonceKey {
        &self.by_purpose[purpose as usize]
    }
}

impl std::fmt::Debug for SecretBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretBox")
    }
}

pub(crate) fn derive(key: &[u8], label: &str) -> Zeroizing<[u8; KEY_LENGTH]> {
    let mut bytes = Zeroizing::new([0; KEY_LENGTH]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"delivery")
        .extract(key)
        .expand(&[label.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut *bytes))
        .expect("HKDF-SHA256 can derive 32 bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use base64::{Engine, prelude::BASE64_STANDARD};
    use tempfile::NamedTempFile;

    use super::*;

    /// A file of master keys, each of 32 equal bytes.
    fn key_file(keys: &[u8]) -> NamedTempFile {
        let file = NamedTempFile::new().unwrap();
        write_keys(&file, keys);
        file
    }

    fn write_keys(file: &NamedTempFile, keys: &[u8]) {
        let lines = keys
            .iter()
            .map(|byte| BASE64_STANDARD.encode([*byte; KEY_LENGTH]));
        fs::write(file.path(), lines.collect::<Vec<_>>().join("\n")).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn a_secret_is_decrypted_only_for_its_purpose_and_context() {
        let file = key_file(&[7]);
        let secret_box = SecretBox::open(file.path()).unwrap();
        let encrypted = secret_box.encrypt(Purpose::WebhookSecret, b"row 1", b"secret");

        let decrypt = |purpose, context| secret_box.decrypt(purpose, context, &encrypted);
        let decrypted = decrypt(Purpose::WebhookSecret, b"row 1");
        assert_eq!(*decrypted.unwrap(), b"secret");
        assert_eq!(format!("{secret_box:?}"), "SecretBox");
        for (purpose, context) in [
            (Purpose::RetailPrice, b"row 1"),
            (Purpose::WebhookSecret, b"row 2"),
        ] {
            let error = decrypt(purpose, context).unwrap_err();
            assert!(matches!(error, Error::Undecryptable), "{error}");
        }
    }

    #[test]
    fn altered_and_truncated_ciphertexts_are_rejected() {
        let file = key_file(&[7]);
        let secret_box = SecretBox::open(file.path()).unwrap();
        let encrypted = secret_box.encrypt(Purpose::RetailPrice, b"", b"499 EUR");

        for at in 0..encrypted.len() {
            let mut altered = encrypted.clone();
            altered[at] ^= 1;
            for wrong in [&altered[..], &encrypted[..at]] {
                let decrypted = secret_box.decrypt(Purpose::RetailPrice, b"", wrong);
                assert!(decrypted.is_err());
            }
        }
    }

    #[test]
    fn the_first_key_of_a_file_encrypts_and_each_decrypts_when_the_file_has_changed() {
        const PURPOSE: Purpose = Purpose::WebhookSecret;
        let file = key_file(&[1]);
        let secret_box = SecretBox::open(file.path()).unwrap();
        let [old] = secret_box.key_ids()[..] else {
            panic!("one key");
        };
        let first = secret_box.encrypt(PURPOSE, b"", b"secret");
        assert!(
            secret_box
                .reencrypt(PURPOSE, b"", &first)
                .unwrap()
                .is_none()
        );

        write_keys(&file, &[1, 2]);
        assert_eq!(secret_box.encrypt(PURPOSE, b"", b"secret")[..4], old.0);
        write_keys(&file, &[2, 1]);
        let [new, _] = secret_box.key_ids()[..] else {
            panic!("two keys");
        };
        let second = secret_box.reencrypt(PURPOSE, b"", &first).unwrap().unwrap();
        assert_eq!(
            (KeyId::of_ciphertext(&first), KeyId::of_ciphertext(&second)),
            (Some(old), Some(new))
        );
        for encrypted in [&first, &second] {
            let decrypted = secret_box.decrypt(PURPOSE, b"", encrypted);
            assert_eq!(*decrypted.unwrap(), b"secret");
        }

        write_keys(&file, &[2]);
        let path = file.path().display();
        let error = secret_box.decrypt(PURPOSE, b"", &first).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "a secret is encrypted with the master key {old}, which {path} does not contain: add its line to that file, from {path}.removed, another core's file or a backup; the core reads the file again when it changes"
            )
        );
        assert_eq!(
            *secret_box.decrypt(PURPOSE, b"", &second).unwrap(),
            b"secret"
        );
    }

    #[test]
    fn a_file_that_becomes_unusable_leaves_the_keys_in_use() {
        let file = key_file(&[1]);
        let secret_box = SecretBox::open(file.path()).unwrap();
        let keys = secret_box.key_ids();

        fs::write(file.path(), "not a key").unwrap();
        assert_eq!(secret_box.key_ids(), keys);
        fs::remove_file(file.path()).unwrap();
        assert_eq!(secret_box.key_ids(), keys);
    }
}
