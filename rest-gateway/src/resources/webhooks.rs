//! `/api/webhooks`

use std::sync::Arc;

use http::{HeaderValue, header::CACHE_CONTROL};
use proto::{
    CreateWebhookRequest, DeleteWebhookRequest, GetWebhookRequest, ListWebhooksRequest,
    iri::{self, Collection},
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{
    collection,
    core::Repeat,
    idempotency, json_ld,
    report::{Object, Report},
    request::Request,
    routes::{Answer, Gateway},
};

const CONTEXT: &str = "/api/contexts/Webhook";

#[derive(Serialize)]
struct Webhook {
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<&'static str>,
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    id: String,
    url: String,
    event: String,
    /// Shown once, when the webhook is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    secret: String,
}

/// `POST /api/webhooks`
pub(crate) async fn create(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let mut report = Report::default();
    let key = idempotency::Key::of(&request, &mut report);
    let body = request.json()?;
    let value = report.parse(&body);
    let webhook = Object::root(&value);
    let mut text = |member| {
        webhook
            .text(member, member, &mut report)
            .unwrap_or_default()
    };
    let (event, url) = (text("event"), text("url"));

    let idempotency = key.map(|key| key.with_body(&body));
    let repeat = Repeat::with(idempotency.as_ref());
    let message = CreateWebhookRequest {
        event,
        url,
        violations: report.violations(),
        idempotency,
    };
    let (metadata, webhook, _) = gateway
        .core
        .call_in_full(call, repeat, message, |core, message| async {
            WebhooksClient::new(core).create_webhook(message).await
        })
        .await
        .map_err(|error| report.explain(error))?
        .into_parts();

    let webhook = Webhook::from(webhook).alone();
    let mut answer = json_ld::created(&gateway.public_url, &webhook.iri, &webhook)?;
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    idempotency::mark(&mut answer, &metadata);
    Ok(answer)
}

/// `GET /api/webhooks/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = GetWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    let webhook = gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmless,
            message,
            |core, message| async { WebhooksClient::new(core).get_webhook(message).await },
        )
        .await?;

    json_ld::ok(&Webhook::from(webhook).alone())
}

/// `GET /api/webhooks`
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = ListWebhooksRequest {};
    let response = gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmless,
            message,
            |core, message| async { WebhooksClient::new(core).list_webhooks(message).await },
        )
        .await?;

    let webhooks = response.webhooks.into_iter().map(Webhook::from).collect();
    json_ld::ok(&collection::Collection::whole(
        CONTEXT,
        "/api/webhooks",
        webhooks,
    ))
}

/// `DELETE /api/webhooks/{id}`
pub(crate) async fn delete(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = DeleteWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmful,
            message,
            |core, message| async { WebhooksClient::new(core).delete_webhook(message).await },
        )
        .await?;

    Ok(json_ld::gone())
}

impl Webhook {
    fn alone(self) -> Self {
        Self {
            context: Some(CONTEXT),
            ..self
        }
    }
}

impl From<proto::Webhook> for Webhook {
    fn from(webhook: proto::Webhook) -> Self {
        Self {
            context: None,
            iri: iri::of(&webhook.name),
            ld_type: "Webhook",
            id: Collection::Webhooks
                .member(&webhook.name)
                .unwrap_or_default()
                .to_owned(),
            url: webhook.url,
            event: webhook.event,
            secret: webhook.secret,
        }
    }
}
