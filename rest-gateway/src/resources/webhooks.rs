//! `/api/webhooks`

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header::CACHE_CONTROL};
use proto::{
    ConfirmWebhookSecretRequest, CreateWebhookRequest, DeleteWebhookRequest, DisableWebhookRequest,
    EnableWebhookRequest, GetWebhookRequest, Idempotency, ListWebhooksRequest,
    RotateWebhookSecretRequest, iri::Collection, webhook::DisabledReason,
    webhooks_client::WebhooksClient,
};
use serde::Serialize;
use serde_json::Value;
use tonic::transport::Channel;

use crate::{
    collection,
    core::Repeat,
    error::Error,
    idempotency,
    json_ld::{self, Node, Zone},
    report::{Object, Report},
    request::Request,
    routes::{Answer, Gateway},
};

const CONTEXT: &str = "/api/contexts/Webhook";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    #[serde(flatten)]
    node: Node,
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
    let response = gateway
        .core
        .call_in_full(call, repeat, message, |core, message| async {
            WebhooksClient::new(core).create_webhook(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    idempotency::answer(response, |webhook| {
        let webhook = Webhook::try_from(webhook)?.alone();
        json_ld::created(&gateway.public_url, webhook.node.iri(), &webhook).map(not_to_be_kept)
    })
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
        .read(&request, message, |core, message| async {
            WebhooksClient::new(core).get_webhook(message).await
        })
        .await?;

    show(webhook)
}

/// `GET /api/webhooks`
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = ListWebhooksRequest::default();
    let response = gateway
        .core
        .read(&request, message, |core, message| async {
            WebhooksClient::new(core).list_webhooks(message).await
        })
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
    let message = |name, idempotency| EnableWebhookRequest { name, idempotency };
    change(gateway, request, message, |core, message| async {
        WebhooksClient::new(core).enable_webhook(message).await
    })
    .await
}

/// `POST /api/webhooks/{id}/disable`
pub(crate) async fn disable(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = |name, idempotency| DisableWebhookRequest { name, idempotency };
    change(gateway, request, message, |core, message| async {
        WebhooksClient::new(core).disable_webhook(message).await
    })
    .await
}

/// `POST /api/webhooks/{id}/confirm_secret`
pub(crate) async fn confirm_secret(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = |name, idempotency| ConfirmWebhookSecretRequest { name, idempotency };
    change(gateway, request, message, |core, message| async {
        WebhooksClient::new(core)
            .confirm_webhook_secret(message)
            .await
    })
    .await
}

/// Calls an rpc that needs to know no more than which webhook it changes.
async fn change<M, F>(
    gateway: Arc<Gateway>,
    request: Request,
    message: impl FnOnce(String, Option<Idempotency>) -> M,
    rpc: impl Fn(Channel, tonic::Request<M>) -> F,
) -> Answer
where
    M: Clone,
    F: Future<Output = Result<tonic::Response<proto::Webhook>, tonic::Status>>,
{
    let call = request.call()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let message = message(name, idempotency::without_content(request)?);

    let response = gateway
        .core
        .call_in_full(call, Repeat::Harmless, message, rpc)
        .await?;

    idempotency::answer(response, show)
}

/// `POST /api/webhooks/{id}/rotate_secret`
pub(crate) async fn rotate_secret(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let mut report = Report::default();
    report.choose("overlap_seconds".to_owned(), "overlap");
    let key = idempotency::Key::of(&request, &mut report);
    let body = request.optional_json()?;
    let value = match &body {
        Some(body) => report.parse(body),
        None => Value::Null,
    };
    let overlap_seconds = Object::root(&value).integer("overlap", "overlap_seconds", &mut report);

    let idempotency = key.map(|key| key.with_body(&body.unwrap_or_default()));
    let repeat = Repeat::with(idempotency.as_ref());
    let message = RotateWebhookSecretRequest {
        name,
        overlap_seconds,
        violations: report.violations(),
        idempotency,
    };
    let response = gateway
        .core
        .call_in_full(call, repeat, message, |core, message| async {
            WebhooksClient::new(core)
                .rotate_webhook_secret(message)
                .await
        })
        .await
        .map_err(|error| report.explain(error))?;

    idempotency::answer(response, |webhook| show(webhook).map(not_to_be_kept))
}

fn show(webhook: proto::Webhook) -> Answer {
    json_ld::ok(&Webhook::try_from(webhook)?.alone())
}

impl Webhook {
    fn alone(mut self) -> Self {
        self.node.stands_alone(CONTEXT);
        self
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
            node: Node::of("Webhook", Collection::Webhooks, &webhook.name),
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
