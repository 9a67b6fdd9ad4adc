//! `/api/webhooks`

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header::CACHE_CONTROL};
use proto::{
    ConfirmWebhookSecretRequest, CreateWebhookRequest, DeleteWebhookRequest, DisableWebhookRequest,
    EnableWebhookRequest, GetWebhookRequest, ListWebhooksRequest, RotateWebhookSecretRequest,
    iri::{self, Collection},
    webhook::DisabledReason,
    webhooks_client::WebhooksClient,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    collection,
    core::Repeat,
    error::Error,
    idempotency,
    json_ld::{self, Zone},
    report::{Object, Report},
    request::Request,
    routes::{Answer, Gateway},
};

const CONTEXT: &str = "/api/contexts/Webhook";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
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
    /// Shown once, when it is made.
    #[serde(skip_serializing_if = "String::is_empty")]
    secret: String,
    /// Until when the secrets before are good too.
    secret_overlap_ends_at: Option<String>,
    enabled: bool,
    disabled_at: Option<String>,
    disabled_reason: Option<&'static str>,
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

    let webhook = Webhook::try_from(webhook)?.alone();
    let mut answer =
        json_ld::created(&gateway.public_url, &webhook.iri, &webhook).map(not_to_be_kept)?;
    idempotency::mark(&mut answer, &metadata);
    Ok(answer)
}

/// An answer with a secret in it.
fn not_to_be_kept(mut answer: Response<Bytes>) -> Response<Bytes> {
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
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

    json_ld::ok(&Webhook::try_from(webhook)?.alone())
}

/// `GET /api/webhooks`
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = ListWebhooksRequest::default();
    let response = gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmless,
            message,
            |core, message| async { WebhooksClient::new(core).list_webhooks(message).await },
        )
        .await?;

    let webhooks = response.webhooks.into_iter().map(Webhook::try_from);
    json_ld::ok(&collection::Collection::whole(
        CONTEXT,
        "/api/webhooks",
        webhooks.collect::<Result<_, _>>()?,
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

/// `POST /api/webhooks/{id}/enable`
pub(crate) async fn enable(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let message = EnableWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    request.check_empty()?;

    let webhook = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            WebhooksClient::new(core).enable_webhook(message).await
        })
        .await?;

    json_ld::ok(&Webhook::try_from(webhook)?.alone())
}

/// `POST /api/webhooks/{id}/disable`
pub(crate) async fn disable(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let message = DisableWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    request.check_empty()?;

    let webhook = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            WebhooksClient::new(core).disable_webhook(message).await
        })
        .await?;

    json_ld::ok(&Webhook::try_from(webhook)?.alone())
}

/// `POST /api/webhooks/{id}/rotate_secret`
pub(crate) async fn rotate_secret(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let mut report = Report::default();
    report.choose("overlap_seconds".to_owned(), "overlap");
    let value = match request.optional_json()? {
        Some(body) => report.parse(&body),
        None => Value::Null,
    };
    let overlap_seconds = Object::root(&value).integer("overlap", "overlap_seconds", &mut report);

    let message = RotateWebhookSecretRequest {
        name,
        overlap_seconds,
        violations: report.violations(),
    };
    let webhook = gateway
        .core
        .call(call, Repeat::Harmful, message, |core, message| async {
            WebhooksClient::new(core)
                .rotate_webhook_secret(message)
                .await
        })
        .await
        .map_err(|error| report.explain(error))?;

    json_ld::ok(&Webhook::try_from(webhook)?.alone()).map(not_to_be_kept)
}

/// `POST /api/webhooks/{id}/confirm_secret`
pub(crate) async fn confirm_secret(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let message = ConfirmWebhookSecretRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    request.check_empty()?;

    let webhook = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            WebhooksClient::new(core)
                .confirm_webhook_secret(message)
                .await
        })
        .await?;

    json_ld::ok(&Webhook::try_from(webhook)?.alone())
}

impl Webhook {
    fn alone(self) -> Self {
        Self {
            context: Some(CONTEXT),
            ..self
        }
    }
}

impl TryFrom<proto::Webhook> for Webhook {
    type Error = Error;

    fn try_from(webhook: proto::Webhook) -> Result<Self, Error> {
        let zone = Zone::named(&webhook.time_zone);
        let disabled_reason = match webhook.disabled_reason() {
            DisabledReason::Unspecified => None,
            DisabledReason::Client => Some("client"),
            DisabledReason::Operator => Some("operator"),
            DisabledReason::Gone => Some("gone"),
            DisabledReason::Failing => Some("failing"),
        };
        Ok(Self {
            context: None,
            iri: iri::of(&webhook.name),
            ld_type: "Webhook",
            id: Collection::Webhooks
                .member(&webhook.name)
                .unwrap_or_default()
                .to_owned(),
            secret_overlap_ends_at: zone.write_optional(webhook.overlap_end_time.as_ref())?,
            enabled: webhook.disable_time.is_none(),
            disabled_at: zone.write_optional(webhook.disable_time.as_ref())?,
            disabled_reason,
            url: webhook.url,
            event: webhook.event,
            secret: webhook.secret,
        })
    }
}
