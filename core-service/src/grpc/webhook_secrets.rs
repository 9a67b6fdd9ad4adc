//! Webhooks' secrets: made, rotated, confirmed, and opened to sign with.

use std::sync::Arc;

use domain::{
    id::WebhookId,
    store::Store,
    webhook::{Secret, Webhook},
    webhook_secrets::{LONGEST_OVERLAP, OVERLAP, Secrets},
};
use jiff::SignedDuration;
use proto::iri::Collection;
use tonic::Response;

use super::{Core, caller::Caller, idempotency::Once, messages, planning};
use process::random;

use crate::{error::Error, vault::Purpose};

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
        mut request: proto::RotateWebhookSecretRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let webhook = (Collection::Webhooks, request.name.as_str());
        let idempotency = request.idempotency.take();
        let once = self.once_on(caller, "RotateWebhookSecret", webhook, idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }
        let (webhook, store) = self.webhook_of(caller, &request.name).await?;
        let overlap = read_overlap(&request)?;

        let now = self.clock.now();
        let overlap_ends_at = now
            .checked_add(overlap)
            .map_err(|error| Error::Bug(error.to_string()))?;
        let (secret, sealed) = self.new_secret(webhook.id);
        let change = move |secrets: &mut Secrets| {
            secrets.rotate(sealed.clone(), overlap_ends_at, now);
        };
        self.change_secrets(once, (webhook, store), change, Some(secret))
            .await
    }

    pub(super) async fn confirm(
        &self,
        caller: &Caller,
        request: proto::ConfirmWebhookSecretRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let name = request.name;
        let webhook = (Collection::Webhooks, name.as_str());
        let once = self.once_on(caller, "ConfirmWebhookSecret", webhook, request.idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }
        let webhook = self.webhook_of(caller, &name).await?;

        self.change_secrets(once, webhook, Secrets::confirm, None)
            .await
    }

    /// Changes a webhook's secrets, and shows one of them if it is new; those who do so at the
    /// same time follow one another.
    async fn change_secrets(
        &self,
        once: Once,
        (webhook, store): (Webhook, Store),
        change: impl Fn(&mut Secrets) + Clone + Send + Sync + 'static,
        new: Option<Secret>,
    ) -> Result<Response<proto::Webhook>, Error> {
        let (store_id, id, now) = (webhook.store_id, webhook.id, self.clock.now());
        let (store, new) = (Arc::new(store), new.map(|secret| secret.to_text()));
        self.write_once(once, move |transaction| {
            let (store, change, new) = (Arc::clone(&store), change.clone(), new.clone());
            Box::pin(async move {
                let found = storage::webhooks::find_and_lock(transaction, store_id, id).await?;
                // It may have been deleted since it was looked at.
                let (webhook, mut secrets) = found.ok_or_else(|| messages::no_webhook(id))?;
                change(&mut secrets);
                storage::webhook_secrets::save(transaction, (store_id, id), &secrets, now).await?;
                let webhook = Webhook {
                    overlap_ends_at: secrets.overlap_ends_at(now),
                    ..webhook
                };
                Ok(proto::Webhook {
                    secret: new.unwrap_or_default(),
                    ..messages::webhook(&webhook, &store, now)
                })
            })
        })
        .await
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
