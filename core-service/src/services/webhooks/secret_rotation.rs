//! Rotates and confirms webhook secrets.

use domain::{
    api_client::Scope,
    store::Store,
    webhook::{Webhook, WebhookKey},
    webhook_secrets::{DEFAULT_OVERLAP, MAX_OVERLAP, Secrets},
};
use jiff::SignedDuration;
use storage::webhooks::secret_columns;
use tonic::Response;

use super::{lock, message, record};
use crate::{
    auth::{audit::Audit, caller::Caller},
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
            Some(secret.to_text())
        };
        let (key, audit) = (webhook.key(), caller.audit.clone());
        self.change_secrets(request_key, key, store, audit, change)
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

        let confirm = |secrets: &mut Secrets| {
            secrets.confirm();
            None
        };
        let (key, audit) = (webhook.key(), caller.audit.clone());
        self.change_secrets(request_key, key, store, audit, confirm)
            .await
    }

    /// Changes a webhook's secrets under a lock. `change` returns the new secret if there is one.
    async fn change_secrets(
        &self,
        request_key: RequestKey,
        key: WebhookKey,
        store: Store,
        audit: Audit,
        change: impl Fn(&mut Secrets) -> Option<String> + Clone + Send + Sync + 'static,
    ) -> Result<Response<proto::Webhook>, Error> {
        let now = self.clock.now();
        self.idempotency
            .write(request_key, move |transaction| async move {
                let (webhook, mut secrets) = lock(&transaction, key).await?;
                let new = change(&mut secrets);
                secret_columns::save(&transaction, key, &secrets, now).await?;
                record(&audit, &transaction, key).await?;
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
