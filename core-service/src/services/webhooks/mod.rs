//! Webhooks, and the notifications of each. A client has access to its own webhooks, an operator to
//! all, which `platform:read` reads.

mod create;
mod enable;
mod notifications;
mod recovery;
mod secret_rotation;
mod test_send;

use domain::{
    api_client::Scope,
    id::WebhookId,
    notification::Failure,
    store::Store,
    webhook::{DisabledReason, Webhook, WebhookKey},
    webhook_secrets::Secrets,
};
use jiff::Timestamp;
use proto::iri::Collection;
use storage::Session;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::{audit::Audit, caller::Caller},
    error::Error,
    messages,
};

#[tonic::async_trait]
impl proto::webhooks_server::Webhooks for Services {
    async fn create_webhook(
        &self,
        request: Request<proto::CreateWebhookRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;
        Ok(self.register_webhook(&caller, request).await?)
    }

    async fn get_webhook(
        &self,
        request: Request<proto::GetWebhookRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;

        let name = request.name;
        let (webhook, store) = self.webhook_of(&caller, Scope::PlatformRead, &name).await?;

        let now = self.clock.now();
        Ok(Response::new(message(&webhook, &store, now)))
    }

    async fn list_webhooks(
        &self,
        request: Request<proto::ListWebhooksRequest>,
    ) -> Reply<proto::ListWebhooksResponse> {
        let (caller, request) = Caller::of(request)?;

        let reader = self.storage.reader();
        if request.failing {
            caller.require(Scope::PlatformRead)?;
            let webhooks = self.failing_webhooks().await?;
            return Ok(Response::new(proto::ListWebhooksResponse { webhooks }));
        }
        let store_name = request.store;
        let (webhooks, store) = if store_name.is_empty() {
            let store = caller.store()?;
            let webhooks = storage::webhooks::list(reader, store.id, caller.id).await;
            (webhooks, store.clone())
        } else {
            caller.require(Scope::PlatformRead)?;
            let store = messages::find_store(&self.storage, &store_name).await?;
            let webhooks = storage::webhooks::list_of_store(reader, store.id).await;
            (webhooks, store)
        };

        let now = self.clock.now();
        Ok(Response::new(proto::ListWebhooksResponse {
            webhooks: webhooks
                .map_err(Error::from)?
                .iter()
                .map(|webhook| message(webhook, &store, now))
                .collect(),
        }))
    }

    async fn delete_webhook(
        &self,
        request: Request<proto::DeleteWebhookRequest>,
    ) -> Reply<proto::DeleteWebhookResponse> {
        let (caller, request) = Caller::of(request)?;

        let name = request.name;
        let (webhook, _) = self.webhook_of(&caller, Scope::Admin, &name).await?;
        let (key, client_id, now) = (webhook.key(), webhook.api_client_id, self.clock.now());
        if webhook.disabled.is_some() {
            storage::notifications::cancel_whole_backlog(&self.storage, key, now)
                .await
                .map_err(Error::from)?;
        }
        let audit = caller.audit.clone();
        let deleted = self
            .storage
            .write(move |transaction| async move {
                let deleted = storage::webhooks::delete(&transaction, key, client_id).await?;
                if deleted {
                    record(&audit, &transaction, key).await?;
                    // Without a limit: the rest of a deleted webhook's backlog would never be
                    // cancelled. If the backlog is too long for one transaction, the call
                    // fails until the webhook is disabled: then several transactions cancel
                    // the backlog above.
                    storage::notifications::cancel_notifications(&transaction, key, None, now)
                        .await?;
                }
                Ok::<_, Error>(deleted)
            })
            .await?;
        if !deleted {
            return Err(Error::NotFound(name).into());
        }

        let reply = Response::new(proto::DeleteWebhookResponse {});
        caller.audit("DeleteWebhook", &name, &reply);
        Ok(reply)
    }

    async fn enable_webhook(
        &self,
        request: Request<proto::EnableWebhookRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;
        let (name, idempotency) = (&request.name, request.idempotency);
        let reply = self.set_disabled(&caller, name, idempotency, false).await?;
        caller.audit("EnableWebhook", &reply.get_ref().name, &reply);
        Ok(reply)
    }

    async fn disable_webhook(
        &self,
        request: Request<proto::DisableWebhookRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;
        let (name, idempotency) = (&request.name, request.idempotency);
        let reply = self.set_disabled(&caller, name, idempotency, true).await?;
        caller.audit("DisableWebhook", &reply.get_ref().name, &reply);
        Ok(reply)
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<proto::RotateWebhookSecretRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;
        let reply = self.rotate_secret(&caller, request).await?;
        caller.audit("RotateWebhookSecret", &reply.get_ref().name, &reply);
        Ok(reply)
    }

    async fn confirm_webhook_secret(
        &self,
        request: Request<proto::ConfirmWebhookSecretRequest>,
    ) -> Reply<proto::Webhook> {
        let (caller, request) = Caller::of(request)?;
        let reply = self.confirm_secret(&caller, request).await?;
        caller.audit("ConfirmWebhookSecret", &reply.get_ref().name, &reply);
        Ok(reply)
    }

    async fn test_webhook(
        &self,
        request: Request<proto::TestWebhookRequest>,
    ) -> Reply<proto::WebhookTest> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name;
        let mut tested = self.send_test(&caller, &name).await?;
        self.record_change(&caller, None, &name);
        if !caller.has(Scope::Admin) && merge_host_failures(&mut tested.failure) {
            NO_ADDRESS.clone_into(&mut tested.detail);
            tested.dns = None;
        }
        let reply = Response::new(tested);
        caller.audit("TestWebhook", &name, &reply);
        Ok(reply)
    }

    async fn list_webhook_notifications(
        &self,
        request: Request<proto::ListWebhookNotificationsRequest>,
    ) -> Reply<proto::ListWebhookNotificationsResponse> {
        let (caller, request) = Caller::of(request)?;
        let mut list = self.list_notifications(&caller, request).await?;
        hide_host_failures(&caller, &mut list.notifications);
        Ok(Response::new(list))
    }

    async fn get_webhook_notification(
        &self,
        request: Request<proto::GetWebhookNotificationRequest>,
    ) -> Reply<proto::WebhookNotification> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name;
        let mut notification = self.get_notification(&caller, &name).await?;
        hide_host_failures(&caller, [&mut notification]);
        Ok(Response::new(notification))
    }

    async fn resend_webhook_notification(
        &self,
        request: Request<proto::ResendWebhookNotificationRequest>,
    ) -> Reply<proto::WebhookNotification> {
        let (caller, request) = Caller::of(request)?;
        let mut reply = self.resend_notification(&caller, request).await?;
        hide_host_failures(&caller, [reply.get_mut()]);
        caller.audit("ResendWebhookNotification", &reply.get_ref().name, &reply);
        Ok(reply)
    }

    async fn recover_webhook(
        &self,
        request: Request<proto::RecoverWebhookRequest>,
    ) -> Reply<proto::RecoverWebhookResponse> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name.clone();
        let reply = self.recover_events(&caller, request).await?;
        caller.audit("RecoverWebhook", &name, &reply);
        Ok(reply)
    }
}

/// Limit of listed failing webhooks.
const MAX_FAILING: u64 = 1000;

/// The detail that a shop gets both for an unknown host name and for one with a denied address.
/// Different details would show which names exist in the platform's network.
const NO_ADDRESS: &str = "the host name has no address on the public internet";

/// Replaces a failure for which a shop gets [`NO_ADDRESS`] by `dns`. Returns whether it is one.
fn merge_host_failures(failure: &mut String) -> bool {
    let is_host_failure = [Failure::Dns, Failure::AddressRefused]
        .map(Failure::as_str)
        .contains(&failure.as_str());
    if is_host_failure {
        Failure::Dns.as_str().clone_into(failure);
    }
    is_host_failure
}

/// Merges the failures of attempts, for a shop.
fn hide_host_failures<'a>(
    caller: &Caller,
    notifications: impl IntoIterator<Item = &'a mut proto::WebhookNotification>,
) {
    if !caller.has(Scope::PlatformRead) {
        let attempts = notifications
            .into_iter()
            .flat_map(|notification| &mut notification.attempts);
        for attempt in attempts {
            merge_host_failures(&mut attempt.failure);
        }
    }
}

/// Records a change of a webhook, in its transaction.
async fn record(audit: &Audit, transaction: &Session, key: WebhookKey) -> Result<(), Error> {
    let name = Collection::Webhooks.name(key.webhook_id);
    audit.record(transaction, Some(key.store_id), name).await
}

/// Locks a webhook, which may have been deleted since it was read.
async fn lock(transaction: &Session, key: WebhookKey) -> Result<(Webhook, Secrets), Error> {
    let found = storage::webhooks::find_and_lock(transaction, key).await?;
    found.ok_or_else(|| Error::NotFound(Collection::Webhooks.name(key.webhook_id)))
}

impl Services {
    /// The webhooks of all stores that fail.
    async fn failing_webhooks(&self) -> Result<Vec<proto::Webhook>, Error> {
        let reader = self.storage.reader();
        let failing = storage::webhooks::list_failing(reader, MAX_FAILING).await?;
        let ids = failing.iter().map(|(webhook, _)| webhook.store_id);
        let stores = storage::stores::find_all(reader, ids).await?;
        let now = self.clock.now();
        let webhooks = failing.iter().filter_map(|(webhook, since)| {
            Some(proto::Webhook {
                failing_since: Some(messages::timestamp(*since)),
                store: Collection::Stores.name(webhook.store_id),
                ..message(webhook, stores.get(&webhook.store_id)?, now)
            })
        });
        Ok(webhooks.collect())
    }

    /// Finds a webhook and its store: one of the caller's own, or any with the scope for those of others.
    async fn webhook_of(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &str,
    ) -> Result<(Webhook, Store), Error> {
        let reader = self.storage.reader();
        if caller.has(scope) {
            let find = |id| storage::webhooks::find_of_any_store(reader, WebhookId(id));
            let webhook = messages::find_resource(Collection::Webhooks, name, find).await?;
            let store = storage::stores::find(reader, webhook.store_id)
                .await?
                .ok_or_else(|| {
                    storage::Error::inconsistent("webhooks", "a webhook has no store")
                })?;
            return Ok((webhook, store));
        }
        let store = caller.store()?;
        let find = |id| {
            let webhook_id = WebhookId(id);
            storage::webhooks::find(reader, store.id, caller.id, webhook_id)
        };
        let webhook = messages::find_resource(Collection::Webhooks, name, find).await?;
        Ok((webhook, store.clone()))
    }
}

/// A webhook, without its secret.
fn message(webhook: &Webhook, store: &Store, now: Timestamp) -> proto::Webhook {
    use proto::webhook::DisabledReason as Reason;
    let reason = webhook
        .disabled
        .map_or(Reason::Unspecified, |disabled| match disabled.reason {
            DisabledReason::Client => Reason::Client,
            DisabledReason::Operator => Reason::Operator,
            DisabledReason::Gone => Reason::Gone,
            DisabledReason::Failing => Reason::Failing,
        });
    proto::Webhook {
        name: Collection::Webhooks.name(webhook.id),
        event: webhook.event.clone(),
        url: webhook.url.clone(),
        secret: String::new(),
        failing_since: None,
        store: String::new(),
        create_time: Some(messages::timestamp(webhook.created_at)),
        disable_time: webhook
            .disabled
            .map(|disabled| messages::timestamp(disabled.at)),
        disabled_reason: reason.into(),
        overlap_end_time: webhook
            .overlap_ends_at
            .filter(|end| now < *end)
            .map(messages::timestamp),
        time_zone: store.time_zone_name().to_owned(),
        api_client: Collection::ApiClients.name(webhook.api_client_id),
        warnings: Vec::new(),
    }
}
