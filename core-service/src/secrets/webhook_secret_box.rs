//! Creates, encrypts and decrypts webhook secrets, each for its webhook.

use domain::{id::WebhookId, webhook::Secret, webhook_secrets::Secrets};
use jiff::Timestamp;
use process::random;

use crate::{
    error::Error,
    secrets::secret_box::{Purpose, SecretBox},
};

pub(crate) fn create(secret_box: &SecretBox, id: WebhookId) -> (Secret, Vec<u8>) {
    let secret = Secret::new(random::bytes());
    let encrypted = secret_box.encrypt(Purpose::WebhookSecret, id.0.as_bytes(), secret.as_bytes());
    (secret, encrypted)
}

/// Decrypts the secrets that are valid now, oldest first.
pub(crate) fn decrypt_valid(
    secret_box: &SecretBox,
    id: WebhookId,
    secrets: &Secrets,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    secrets
        .valid(now)
        .map(|encrypted| {
            let secret = secret_box.decrypt(Purpose::WebhookSecret, id.0.as_bytes(), encrypted)?;
            let secret = Secret::from_bytes(&secret).ok_or_else(|| {
                storage::Error::inconsistent("webhooks", "a secret has the wrong length")
            })?;
            Ok(secret.to_text())
        })
        .collect()
}
