//! Rotates and confirms webhook secrets.

use domain::{
    api_client::Scope,
    store::Store,
    webhook::{Secret, Webhook},
    webhook_secrets::{DEFAULT_OVERLAP, MAX_OVERLAP, Secrets},
};
use jiff::SignedDuration;
use storage::webhooks::secret_columns;
use tonic::Response;

use super::{lock, message};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::{RequestKey, begin_or_replay},
    messages,
    secrets::webhook_secret_box,
    services::Services,
};

impl Services {
    pub(super) async fn rotate_secret(
        &self,
        caller: &Caller,
        mut request: proto::RotateWebhookSecretRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let idempotency = request.idempotency.take();
        let request_key = begin_or_replay!(
            self,
            caller,
            "RotateWebhookSecret",
            &request.name,
            idempotency
        );
        let (webhook, store) = self.webhook_of(caller, Scope::Admin, &request.name).await?;
        let overlap = read_overlap(&request)?;

        let now = self.clock.now();
        let overlap_ends_at = now
            .checked_add(overlap)
            .map_err(|error| Error::Bug(error.to_string()))?;
        let (secret, encrypted) = webhook_secret_box::create(&self.secret_box, webhook.id);
        let change = move |secrets: &mut Secrets| {
            secrets.rotate(encrypted.clone(), overlap_ends_at, now);
        };
        self.change_secrets(request_key, &webhook, store, change, Some(secret))
            .await
    }

    pub(super) async fn confirm_secret(
        &self,
        caller: &Caller,
        request: proto::ConfirmWebhookSecretRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let idempotency = request.idempotency;
        let request_key = begin_or_replay!(
            self,
            caller,
            "ConfirmWebhookSecret",
            &request.name,
            idempotency
        );
        let (webhook, store) = self.webhook_of(caller, Scope::Admin, &request.name).await?;

        self.change_secrets(request_key, &webhook, store, Secrets::confirm, None)
            .await
    }

    /// Changes a webhook's secrets under a lock, and returns the new secret if there is one.
    async fn change_secrets(
        &self,
        request_key: RequestKey,
        webhook: &Webhook,
        store: Store,
        change: impl Fn(&mut Secrets) + Clone + Send + Sync + 'static,
        new: Option<Secret>,
    ) -> Result<Response<proto::Webhook>, Error> {
        let (key, now) = (webhook.key(), self.clock.now());
        let new = new.map(|secret| secret.to_text());
        self.idempotency
            .write(request_key, move |transaction| async move {
                let (webhook, mut secrets) = lock(&transaction, key).await?;
                change(&mut secrets);
                secret_columns::save(&transaction, key, &secrets, now).await?;
                let webhook = Webhook {
                    overlap_ends_at: secrets.overlap_ends_at(now),
                    ..webhook
                };
                Ok(proto::Webhook {
                    secret: new.unwrap_or_default(),
                    ..message(&webhook, &store, now)
                })
            })
            .await
    }
}

fn read_overlap(request: &proto::RotateWebhookSecretRequest) -> Result<SignedDuration, Error> {
    let mut violations = messages::read_violations(request.violations.clone());
    let overlap = request
        .overlap_seconds
        .map_or(DEFAULT_OVERLAP, SignedDuration::from_secs);
    if !(SignedDuration::ZERO..=MAX_OVERLAP).contains(&overlap) {
        violations.add(
            "overlap_seconds",
            "OUT_OF_RANGE",
            format!(
                "must be from 0 to {} seconds, not {}",
                MAX_OVERLAP.as_secs(),
                overlap.as_secs()
            ),
        );
    }
    Error::check(violations).map(|()| overlap)
}
