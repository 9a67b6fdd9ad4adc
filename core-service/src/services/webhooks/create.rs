//! Creates webhooks.

use domain::{
    event::EventName,
    id::{ApiClientId, StoreId, WebhookId},
    webhook::{MAX_PER_CLIENT, Webhook},
    webhook_secrets::Secrets,
};
use tonic::Response;

use crate::{
    auth::caller::Caller,
    error::{Error, Unauthenticated},
    messages,
    secrets::webhook_secret_box,
    services::Services,
};

impl Services {
    pub(super) async fn register_webhook(
        &self,
        caller: &Caller,
        mut request: proto::CreateWebhookRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let store = caller.store()?;
        let owner = (store.id, caller.id);
        let begun = self
            .idempotency
            .begin(caller, "CreateWebhook", request.idempotency.take());
        let (request_key, replayed) = begun.await?;
        if let Some(reply) = replayed {
            return Ok(reply);
        }

        let webhook = self.parse_webhook(store.id, caller.id, request)?;

        let (secret, encrypted) = webhook_secret_box::create(&self.secret_box, webhook.id);
        let reply = proto::Webhook {
            secret: secret.to_text(),
            ..messages::webhook(&webhook, store, webhook.created_at)
        };
        let secrets = Secrets::new(encrypted);
        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::stores::lock(&transaction, webhook.store_id).await?;
                // A client that is disabled meanwhile must keep no enabled webhook.
                let client = storage::api_clients::find_and_lock(&transaction, owner.1).await?;
                if client.is_none_or(|client| client.disabled_at.is_some()) {
                    return Err(Error::Unauthenticated(Unauthenticated::InvalidToken));
                }
                let count = storage::webhooks::count(&transaction, owner).await?;
                if count >= MAX_PER_CLIENT {
                    return Err(Error::Quota(
                        "TOO_MANY_WEBHOOKS",
                        format!("a client has at most {MAX_PER_CLIENT} webhooks; delete one first"),
                    ));
                }
                storage::webhooks::insert(&transaction, &webhook, &secrets).await?;
                Ok(reply)
            })
            .await
    }

    fn parse_webhook(
        &self,
        store_id: StoreId,
        api_client_id: ApiClientId,
        request: proto::CreateWebhookRequest,
    ) -> Result<Webhook, Error> {
        let mut violations = messages::read_violations(request.violations);
        let event = if request.event.is_empty() {
            violations.add("event", "REQUIRED", "is required");
            None
        } else {
            let parsed = request.event.parse::<EventName>();
            violations.check("event", "UNKNOWN_EVENT", parsed)
        };
        let url = if request.url.is_empty() {
            violations.add("url", "REQUIRED", "is required");
            None
        } else {
            violations.check(
                "url",
                "INVALID_URL",
                self.config.egress.check_url(&request.url),
            )
        };
        match (event, url) {
            (Some(event), Some(url)) if violations.is_empty() => Ok(Webhook {
                id: WebhookId::new(),
                store_id,
                api_client_id,
                event,
                // As sent: clients compare it with the URL that they registered.
                url: request.url,
                host: egress::host_and_port(&url),
                created_at: self.clock.now(),
                overlap_ends_at: None,
                disabled: None,
                last_disabled_period: None,
            }),
            _ => Err(Error::Invalid(violations)),
        }
    }
}
