//! Webhooks' secrets: made, rotated, confirmed, and opened to sign with.

use jiff::SignedDuration;
use tonic::Status;

use super::{Core, caller::Caller, messages, planning};
use crate::{
    domain::{
        id::WebhookId,
        webhook::{Secret, Webhook},
        webhook_secrets::{LONGEST_OVERLAP, OVERLAP, Secrets},
    },
    error::Error,
    random, storage,
    vault::Purpose,
};

impl Core {
    /// A new secret, and how it is kept.
    pub(super) fn new_secret(&self, id: WebhookId) -> (Secret, Vec<u8>) {
        let secret = Secret::new(random::bytes());
        let sealed = self
            .vault
            .seal(Purpose::WebhookSecret, id.0.as_bytes(), secret.as_bytes());
        (secret, sealed)
    }

    /// The texts of the secrets that are live now, oldest first.
    pub(super) fn live_secrets(
        &self,
        id: WebhookId,
        secrets: &Secrets,
    ) -> Result<Vec<String>, Error> {
        secrets
            .live(self.clock.now())
            .map(|sealed| {
                let secret = self
                    .vault
                    .unseal(Purpose::WebhookSecret, id.0.as_bytes(), sealed)?;
                let secret = Secret::from_bytes(&secret).ok_or_else(|| {
                    storage::Error::inconsistent("webhooks", "a secret of another length")
                })?;
                Ok(secret.to_text())
            })
            .collect()
    }

    pub(super) async fn rotate(
        &self,
        caller: &Caller,
        request: proto::RotateWebhookSecretRequest,
    ) -> Result<proto::Webhook, Status> {
        let (webhook, store) = self.webhook_of(caller, &request.name).await?;
        let overlap = read_overlap(&request)?;

        let now = self.clock.now();
        let overlap_ends_at = now
            .checked_add(overlap)
            .map_err(|error| Error::Bug(error.to_string()))?;
        let (secret, sealed) = self.new_secret(webhook.id);
        let changed = self
            .change_secrets(&webhook, move |secrets| {
                secrets.rotate(sealed.clone(), overlap_ends_at, now);
            })
            .await?;
        Ok(proto::Webhook {
            secret: secret.to_text(),
            ..messages::webhook(&changed, &store, now)
        })
    }

    pub(super) async fn confirm(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::Webhook, Status> {
        let (webhook, store) = self.webhook_of(caller, name).await?;

        let changed = self.change_secrets(&webhook, Secrets::confirm).await?;
        Ok(messages::webhook(&changed, &store, self.clock.now()))
    }

    /// Changes a webhook's secrets; those who do so at the same time follow one another.
    async fn change_secrets(
        &self,
        webhook: &Webhook,
        change: impl Fn(&mut Secrets) + Clone + Send + Sync + 'static,
    ) -> Result<Webhook, Error> {
        let (store_id, id, now) = (webhook.store_id, webhook.id, self.clock.now());
        let changed = self
            .storage
            .write(move |transaction| {
                let change = change.clone();
                Box::pin(async move {
                    let found = storage::webhooks::find_and_lock(transaction, store_id, id).await?;
                    let Some((webhook, mut secrets)) = found else {
                        return Ok(None);
                    };
                    change(&mut secrets);
                    storage::webhook_secrets::save(transaction, (store_id, id), &secrets, now)
                        .await?;
                    Ok(Some(Webhook {
                        overlap_ends_at: secrets.overlap_ends_at(now),
                        ..webhook
                    }))
                })
            })
            .await?;
        // It may have been deleted since it was looked at.
        changed.ok_or_else(|| Error::NotFound {
            name: messages::webhook_name(id),
        })
    }
}

fn read_overlap(request: &proto::RotateWebhookSecretRequest) -> Result<SignedDuration, Error> {
    let mut violations = planning::violations(request.violations.clone());
    let overlap = request
        .overlap_seconds
        .map_or(OVERLAP, SignedDuration::from_secs);
    if !(SignedDuration::ZERO..=LONGEST_OVERLAP).contains(&overlap) {
        violations.add(
            "overlap_seconds",
            "OUT_OF_RANGE",
            format!(
                "must be from 0 to {} seconds, not {}",
                LONGEST_OVERLAP.as_secs(),
                overlap.as_secs()
            ),
        );
    }
    if violations.is_empty() {
        Ok(overlap)
    } else {
        Err(Error::Invalid(violations))
    }
}
