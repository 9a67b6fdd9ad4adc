//! Webhooks: registered by shops, each client its own; operators look at all.

use domain::{
    api_client::Scope,
    event::EventName,
    id::{ApiClientId, StoreId, WebhookId},
    store::Store,
    webhook::{MOST_PER_CLIENT, Webhook},
    webhook_secrets::Secrets,
};
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, caller::Caller, messages, planning};

use crate::error::Error;

#[tonic::async_trait]
impl proto::webhooks_server::Webhooks for Core {
    async fn create_webhook(
        &self,
        request: Request<proto::CreateWebhookRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let store = caller.store()?;
        let owner = (store.id, caller.id);
        let mut request = request.into_inner();
        let once = self.once(&caller, "CreateWebhook", request.idempotency.take())?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }

        let webhook = self.parse_webhook(owner, request)?;

        let (secret, sealed) = self.new_secret(webhook.id);
        let reply = proto::Webhook {
            secret: secret.to_text(),
            ..messages::webhook(&webhook, store, webhook.created_at)
        };
        let reply = self
            .write_once(once, move |transaction| {
                let (webhook, secrets) = (webhook.clone(), Secrets::new(sealed.clone()));
                let reply = reply.clone();
                Box::pin(async move {
                    storage::stores::lock(transaction, webhook.store_id).await?;
                    let count = storage::webhooks::count(transaction, owner).await?;
                    if count >= MOST_PER_CLIENT {
                        return Err(Error::Quota {
                            reason: "TOO_MANY_WEBHOOKS",
                            message: format!(
                                "a client has at most {MOST_PER_CLIENT} webhooks; delete one first"
                            ),
                        });
                    }
                    storage::webhooks::insert(transaction, &webhook, &secrets).await?;
                    Ok(reply)
                })
            })
            .await?;
        Ok(reply)
    }

    async fn get_webhook(
        &self,
        request: Request<proto::GetWebhookRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;

        let name = request.into_inner().name;
        let (webhook, store) = self.webhook_of(&caller, &name).await?;

        let now = self.clock.now();
        Ok(Response::new(messages::webhook(&webhook, &store, now)))
    }

    async fn list_webhooks(
        &self,
        request: Request<proto::ListWebhooksRequest>,
    ) -> Result<Response<proto::ListWebhooksResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;

        let reader = self.storage.reader();
        let of = request.into_inner().store;
        let (webhooks, store) = if of.is_empty() {
            let store = caller.store()?;
            let owner = (store.id, caller.id);
            (storage::webhooks::list(reader, owner).await, store.clone())
        } else {
            caller.require(Scope::Admin)?;
            let store = self.find_store(&of).await?;
            let webhooks = storage::webhooks::list_of_store(reader, store.id).await;
            (webhooks, store)
        };

        let now = self.clock.now();
        Ok(Response::new(proto::ListWebhooksResponse {
            webhooks: webhooks
                .map_err(Error::from)?
                .iter()
                .map(|webhook| messages::webhook(webhook, &store, now))
                .collect(),
        }))
    }

    async fn delete_webhook(
        &self,
        request: Request<proto::DeleteWebhookRequest>,
    ) -> Result<Response<proto::DeleteWebhookResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;

        let name = request.into_inner().name;
        let (webhook, _) = self.webhook_of(&caller, &name).await?;
        let owner = (webhook.store_id, webhook.api_client_id);
        let (webhook_id, now) = (webhook.id, self.clock.now());
        if webhook.disabled.is_some() {
            let of = (webhook.store_id, webhook_id);
            storage::notifications::drop_left_of(&self.storage, of, now)
                .await
                .map_err(Error::from)?;
        }
        let deleted = self
            .storage
            .write(move |transaction| {
                Box::pin(async move {
                    let (store_id, _) = owner;
                    let deleted = storage::webhooks::delete(transaction, owner, webhook_id).await?;
                    if deleted {
                        // All of it: nothing may be left of a webhook that is no more. Should a
                        // backlog be too long for one transaction, this call is refused until
                        // the webhook was disabled.
                        let id = webhook_id;
                        storage::notifications::drop_owed(transaction, store_id, id, None, now)
                            .await?;
                    }
                    Ok::<_, Error>(deleted)
                })
            })
            .await?;
        if !deleted {
            return Err(Error::NotFound { name }.into());
        }

        Ok(Response::new(proto::DeleteWebhookResponse {}))
    }

    async fn enable_webhook(
        &self,
        request: Request<proto::EnableWebhookRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.enable(&caller, request.into_inner()).await?)
    }

    async fn disable_webhook(
        &self,
        request: Request<proto::DisableWebhookRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.disable(&caller, request.into_inner()).await?)
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<proto::RotateWebhookSecretRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.rotate(&caller, request.into_inner()).await?)
    }

    async fn confirm_webhook_secret(
        &self,
        request: Request<proto::ConfirmWebhookSecretRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.confirm(&caller, request.into_inner()).await?)
    }

    async fn test_webhook(
        &self,
        request: Request<proto::TestWebhookRequest>,
    ) -> Result<Response<proto::WebhookTest>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let name = request.into_inner().name;
        Ok(Response::new(self.test(&caller, &name).await?))
    }

    async fn list_webhook_notifications(
        &self,
        request: Request<proto::ListWebhookNotificationsRequest>,
    ) -> Result<Response<proto::ListWebhookNotificationsResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let request = request.into_inner();
        Ok(Response::new(
            self.list_notifications(&caller, request).await?,
        ))
    }

    async fn get_webhook_notification(
        &self,
        request: Request<proto::GetWebhookNotificationRequest>,
    ) -> Result<Response<proto::WebhookNotification>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let name = request.into_inner().name;
        Ok(Response::new(self.get_notification(&caller, &name).await?))
    }

    async fn resend_webhook_notification(
        &self,
        request: Request<proto::ResendWebhookNotificationRequest>,
    ) -> Result<Response<proto::WebhookNotification>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.resend(&caller, request.into_inner()).await?)
    }

    async fn recover_webhook(
        &self,
        request: Request<proto::RecoverWebhookRequest>,
    ) -> Result<Response<proto::RecoverWebhookResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        Ok(self.recover(&caller, request.into_inner()).await?)
    }
}

impl Core {
    /// A webhook that the caller may see, its own or with scope `admin` any, and its store.
    pub(super) async fn webhook_of(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Webhook, Store), Error> {
        let not_found = || Error::NotFound {
            name: name.to_owned(),
        };
        let reader = self.storage.reader();
        let id = Collection::Webhooks.id(name).map(WebhookId);
        if caller.has(Scope::Admin) {
            let id = id.ok_or_else(not_found)?;
            let webhook = storage::webhooks::find_of_any_store(reader, id)
                .await?
                .ok_or_else(not_found)?;
            let store = storage::stores::find(reader, webhook.store_id)
                .await?
                .ok_or_else(|| storage::Error::inconsistent("webhooks", "one without a store"))?;
            return Ok((webhook, store));
        }
        let store = caller.store()?;
        let id = id.ok_or_else(not_found)?;
        let webhook = storage::webhooks::find(reader, (store.id, caller.id), id)
            .await?
            .ok_or_else(not_found)?;
        Ok((webhook, store.clone()))
    }

    fn parse_webhook(
        &self,
        (store_id, api_client_id): (StoreId, ApiClientId),
        request: proto::CreateWebhookRequest,
    ) -> Result<Webhook, Error> {
        let mut violations = planning::violations(request.violations);
        let event = if request.event.is_empty() {
            violations.add("event", "REQUIRED", "is required");
            None
        } else {
            let parsed = request.event.parse::<EventName>();
            violations.check("event", "UNKNOWN_EVENT", parsed)
        };
        if request.url.is_empty() {
            violations.add("url", "REQUIRED", "is required");
        } else {
            violations.check("url", "INVALID_URL", self.egress.check_url(&request.url));
        }
        match event {
            Some(event) if violations.is_empty() => Ok(Webhook {
                id: WebhookId::new(),
                store_id,
                api_client_id,
                event,
                // As sent: receivers compare it with what they registered.
                url: request.url,
                created_at: self.clock.now(),
                overlap_ends_at: None,
                disabled: None,
                missed: None,
            }),
            _ => Err(Error::Invalid(violations)),
        }
    }
}
