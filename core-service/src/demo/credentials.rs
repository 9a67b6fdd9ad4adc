//! The credentials of the clients that the all-in-one creates: derived from a secret in the
//! database, the same at every start and under every master key.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use process::random;
use storage::Storage;
use zeroize::Zeroizing;

use crate::{
    bootstrap::Credentials,
    error::Error,
    secrets::secret_box::{Purpose, SecretBox, derive},
};

/// The name of the secret in the database.
const NAME: &str = "own clients";

/// The secret from which the credentials are derived.
pub(super) struct Seed(Zeroizing<Vec<u8>>);

impl Seed {
    /// Reads the secret; creates it at the first start.
    pub(super) async fn read_or_create(
        storage: &Storage,
        secret_box: &SecretBox,
    ) -> Result<Self, Error> {
        if let Some(seed) = Self::read(storage, secret_box).await? {
            return Ok(seed);
        }
        let new = Zeroizing::new(random::bytes::<32>());
        let encrypted = secret_box.encrypt(Purpose::PlatformSecret, NAME.as_bytes(), &*new);
        let secret = (NAME.to_owned(), encrypted);
        storage
            .write(move |transaction| async move {
                // Another all-in-one may have created it meanwhile.
                storage::platform_secrets::insert_if_absent(&transaction, secret).await
            })
            .await?;
        Self::read(storage, secret_box)
            .await?
            .ok_or_else(|| Error::Bug("no secret after creating one".to_owned()))
    }

    async fn read(storage: &Storage, secret_box: &SecretBox) -> Result<Option<Self>, Error> {
        let encrypted = storage::platform_secrets::find(storage.reader(), NAME).await?;
        let decrypt =
            |secret: Vec<u8>| secret_box.decrypt(Purpose::PlatformSecret, NAME.as_bytes(), &secret);
        Ok(encrypted.map(decrypt).transpose()?.map(Self))
    }

    pub(super) fn credentials(&self, label: &str) -> Credentials {
        let key = derive(&self.0, &format!("{label} key"));
        let secret = derive(&self.0, &format!("{label} secret"));
        Credentials {
            api_key: BASE64_URL_SAFE_NO_PAD.encode(&key[..16]),
            api_secret: BASE64_URL_SAFE_NO_PAD.encode(*secret),
        }
    }
}
