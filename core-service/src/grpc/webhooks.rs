//! Webhooks: registered by shops, each client its own.

use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, messages, planning};
use crate::{
    domain::{
        event::EventName,
        id::{ApiClientId, StoreId, WebhookId},
        webhook::{MOST_PER_CLIENT, Secret, Webhook},
    },
    error::Error,
    random, storage,
    vault::Purpose,
};

#[tonic::async_trait]
impl proto::webhooks_server::Webhooks for Core {
    async fn create_webhook(
        &self,
        request: Request<proto::CreateWebhookRequest>,
    ) -> Result<Response<proto::Webhook>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let owner = (caller.store()?.id, caller.id);
        let mut request = request.into_inner();
        let once = self.once(&caller, "CreateWebhook", request.idempotency.take())?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }

        let webhook = self.parse_webhook(owner, request)?;

        let secret = Secret::new(random::bytes());
        let sealed_secret = self.vault.seal(
            Purpose::WebhookSecret,
            webhook.id.0.as_bytes(),
            secret.as_bytes(),
        );
        let reply = messages::webhook(&webhook, Some(secret.to_text()));
        let reply = self
            .write_once(once, move |transaction| {
                let (webhook, sealed_secret) = (webhook.clone(), sealed_secret.clone());
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
                    storage::webhooks::insert(transaction, &webhook, &sealed_secret).await?;
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
        let owner = (caller.store()?.id, caller.id);

        let name = request.into_inner().name;
        let not_found = || Error::NotFound { name: name.clone() };
        let id = Collection::Webhooks.id(&name).ok_or_else(not_found)?;
        let webhook = storage::webhooks::find(self.storage.reader(), owner, WebhookId(id))
            .await
            .map_err(Error::from)?
            .ok_or_else(not_found)?;

        Ok(Response::new(messages::webhook(&webhook, None)))
    }

    async fn list_webhooks(
        &self,
        request: Request<proto::ListWebhooksRequest>,
    ) -> Result<Response<proto::ListWebhooksResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let owner = (caller.store()?.id, caller.id);

        let webhooks = storage::webhooks::list(self.storage.reader(), owner)
            .await
            .map_err(Error::from)?;

        Ok(Response::new(proto::ListWebhooksResponse {
            webhooks: webhooks
                .iter()
                .map(|webhook| messages::webhook(webhook, None))
                .collect(),
        }))
    }

    async fn delete_webhook(
        &self,
        request: Request<proto::DeleteWebhookRequest>,
    ) -> Result<Response<proto::DeleteWebhookResponse>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        let owner = (caller.store()?.id, caller.id);

        let name = request.into_inner().name;
        let not_found = || Error::NotFound { name: name.clone() };
        let id = Collection::Webhooks.id(&name).ok_or_else(not_found)?;
        let (webhook_id, now) = (WebhookId(id), self.clock.now());
        let deleted = self
            .storage
            .write(move |transaction| {
                Box::pin(async move {
                    let (store_id, _) = owner;
                    let deleted = storage::webhooks::delete(transaction, owner, webhook_id).await?;
                    if deleted {
                        storage::notifications::drop_owed(transaction, store_id, webhook_id, now)
                            .await?;
                    }
                    Ok(deleted)
                })
            })
            .await?;
        if !deleted {
            return Err(not_found().into());
        }

        Ok(Response::new(proto::DeleteWebhookResponse {}))
    }
}

impl Core {
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
                disabled_at: None,
            }),
            _ => Err(Error::Invalid(violations)),
        }
    }
}
