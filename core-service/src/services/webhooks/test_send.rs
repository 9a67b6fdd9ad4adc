//! Tests a webhook: a dispatcher with a stream to this process sends a signed sample. Only
//! dispatchers connect to receivers, so that a sample takes the same path as a notification and
//! is subject to the same egress policy.

use domain::{
    api_client::Scope,
    id::{DeliveryId, NotificationId},
    notification::Failure,
    webhook::Webhook,
};
use proto::iri::Collection;
use storage::webhooks::secret_columns;
use uuid::Uuid;

use crate::{
    auth::caller::Caller,
    error::Error,
    notifications::{self, OUTCOME_TIMEOUT},
    secrets::webhook_secret_box,
    services::Services,
};

/// The delivery that every sample names. No delivery has this id.
const SAMPLE_DELIVERY: DeliveryId = DeliveryId(Uuid::nil());

impl Services {
    /// Sends a webhook a signed sample and returns the outcome. A disabled webhook can be tested
    /// before it is enabled again.
    pub(super) async fn send_test(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::WebhookTest, Error> {
        let (webhook, _) = self.webhook_of(caller, Scope::Admin, name).await?;
        let reader = self.storage.reader();
        let encrypted = secret_columns::find(reader, webhook.key())
            .await?
            // Deleted since it was read.
            .ok_or_else(|| Error::NotFound(name.to_owned()))?;
        let now = self.clock.now();
        let secrets =
            webhook_secret_box::decrypt_valid(&self.secret_box, webhook.id, &encrypted, now)?;
        let id = NotificationId::new();
        let sample = proto::Notification {
            name: Collection::Notifications.name(id),
            lease: prost_types::Duration::try_from(OUTCOME_TIMEOUT).ok(),
            url: webhook.url.clone(),
            secrets,
            event: webhook.event.clone(),
            object: Collection::Deliveries.name(SAMPLE_DELIVERY),
            attempt: 1,
            test: true,
            ..proto::Notification::default()
        };

        let outcome = self.queue.test_sends.send(webhook.store_id, sample).await?;

        Ok(message(&webhook, id, outcome))
    }
}

fn message(webhook: &Webhook, id: NotificationId, outcome: proto::Outcome) -> proto::WebhookTest {
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let failure = notifications::failure(outcome.failure, status);
    proto::WebhookTest {
        webhook: Collection::Webhooks.name(webhook.id),
        url: webhook.url.clone(),
        id: id.to_string(),
        event: webhook.event.clone(),
        object: Collection::Deliveries.name(SAMPLE_DELIVERY),
        failure: failure.map_or("", Failure::as_str).to_owned(),
        detail: outcome.detail,
        dns: outcome.dns,
        connect: outcome.connect,
        tls: outcome.tls,
        tls_version: outcome.tls_version,
        duration: outcome.duration,
        status: outcome.status,
        response_body: outcome.response_body,
    }
}
