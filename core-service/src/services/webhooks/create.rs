//! Creates webhooks.

use domain::{
    event::EventName,
    id::{ApiClientId, StoreId, WebhookId},
    visible::visible,
    webhook::{MAX_PER_CLIENT, Webhook},
    webhook_secrets::Secrets,
};
use proto::iri::{self, Collection};
use tonic::Response;

use super::message;
use crate::{
    auth::caller::Caller,
    error::{Error, Unauthenticated},
    idempotency::begin_or_replay,
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
        let request_key = begin_or_replay!(
            self,
            caller,
            "CreateWebhook",
            "",
            request.idempotency.take()
        );

        let webhook = self.parse_webhook(store.id, caller.id, request)?;

        let (secret, encrypted) = webhook_secret_box::create(&self.secret_box, webhook.id);
        let mut reply = proto::Webhook {
            secret: secret.to_text(),
            ..message(&webhook, store, webhook.created_at)
        };
        let secrets = Secrets::new(encrypted);
        self.idempotency
            .write(request_key, move |transaction| async move {
                storage::stores::lock(&transaction, webhook.store_id).await?;
                // A client that is disabled meanwhile must keep no enabled webhook.
                let (store_id, client_id) = (webhook.store_id, webhook.api_client_id);
                let client = storage::api_clients::find_and_lock(&transaction, client_id).await?;
                if client.is_none_or(|client| client.disabled_at.is_some()) {
                    return Err(Error::Unauthenticated(Unauthenticated::InvalidToken));
                }
                let others = storage::webhooks::list(&transaction, store_id, client_id).await?;
                if others.len() >= MAX_PER_CLIENT {
                    return Err(Error::Quota(
                        "TOO_MANY_WEBHOOKS",
                        format!("a client has at most {MAX_PER_CLIENT} webhooks; delete one first"),
                    ));
                }
                reply.warnings = others
                    .iter()
                    .find_map(|other| duplicate(other, &webhook))
                    .into_iter()
                    .collect();
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
        let (event, url_text) = (visible(&request.event), visible(&request.url));
        let event = if event.is_empty() {
            violations.add("event", "REQUIRED", "is required");
            None
        } else {
            let parsed = event.parse::<EventName>();
            violations.check("event", "UNKNOWN_EVENT", parsed)
        };
        let url = if url_text.is_empty() {
            violations.add("url", "REQUIRED", "is required");
            None
        } else {
            violations.check(
                "url",
                "INVALID_URL",
                self.config.egress.check_url(&url_text),
            )
        };
        match (event, url) {
            (Some(event), Some(url)) if violations.is_empty() => Ok(Webhook {
                id: WebhookId::new(),
                store_id,
                api_client_id,
                event: event.as_str().to_owned(),
                // Not normalised: clients compare it with the URL that they registered.
                url: url_text.into_owned(),
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

/// The warning if events are sent to the same URL because of another webhook already.
fn duplicate(other: &Webhook, webhook: &Webhook) -> Option<proto::Warning> {
    let is_same = other.event == webhook.event && other.url == webhook.url;
    (is_same && other.disabled.is_none()).then(|| proto::Warning {
        field: "url".to_owned(),
        description: format!(
            "gets each event twice: {} is for the same event and url; delete the one that you do not need",
            iri::of(&Collection::Webhooks.name(other.id))
        ),
        reason: "DUPLICATE_WEBHOOK".to_owned(),
    })
}
