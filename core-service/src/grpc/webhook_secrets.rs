//! Creates, encrypts and decrypts webhook secrets.

use std::sync::Arc;

use domain::{id::WebhookId, webhook::Secret, webhook_secrets::Secrets};
use process::{clock::Clock, random};

use crate::{
    error::Error,
    secret_box::{Purpose, SecretBox},
};

/// The secrets of webhooks, encrypted each for its webhook.
pub(super) struct WebhookSecrets {
    pub(super) secret_box: Arc<SecretBox>,
    pub(super) clock: Clock,
}

impl WebhookSecrets {
    /// Creates a secret and returns it with its encrypted form.
    pub(super) fn create(&self, id: WebhookId) -> (Secret, Vec<u8>) {
        let secret = Secret::new(random::bytes());
        let encrypted =
            self.secret_box
                .encrypt(Purpose::WebhookSecret, id.0.as_bytes(), secret.as_bytes());
        (secret, encrypted)
    }

    /// Decrypts the secrets that are valid now, oldest first.
    pub(super) fn decrypt_valid(
        &self,
        id: WebhookId,
        secrets: &Secrets,
    ) -> Result<Vec<String>, Error> {
        secrets
            .valid(self.clock.now())
            .map(|encrypted| {
                let secret =
                    self.secret_box
                        .decrypt(Purpose::WebhookSecret, id.0.as_bytes(), encrypted)?;
                let secret = Secret::from_bytes(&secret).ok_or_else(|| {
                    storage::Error::inconsistent("webhooks", "a secret has the wrong length")
                })?;
                Ok(secret.to_text())
            })
            .collect()
    }
}
