//! `/api/webhooks`

pub(crate) mod notifications;
pub(crate) mod test_send;

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

use crate::{
    api_description::{SECRET_ROTATION, Shape, WEBHOOK},
    body_reader::Object,
    collection,
    core_pool::{CoreChannel, Retry},
    error::Error,
    gateway::{Gateway, HandlerResult},
    idempotency,
    json_ld::{self, Node, StoreTimeZone},
    request::Request,
};

const CONTEXT: &str = "/api/contexts/Webhook";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    #[serde(flatten)]
    node: Node,
    url: String,
    event: String,
    /// Only in the response that creates or rotates it.
    #[serde(skip_serializing_if = "String::is_empty")]
    secret: String,
    /// Until then, requests are signed with the old secrets too.
    secret_overlap_ends_at: Option<String>,
    enabled: bool,
    disabled_at: Option<String>,
    disabled_reason: Option<&'static str>,
}

/// `POST /api/webhooks`
pub(crate) async fn create(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let options = request.call_options()?;
    let mut violations = request.violations();
    let key = idempotency::Key::from_request(&request, &mut violations);
    let body = request.json()?;
    let value = violations.parse(&body, Shape::Class(&WEBHOOK));
    let webhook = Object::root(&value);
    let mut text = |member| {
        webhook
            .text(member, member, &mut violations)
            .unwrap_or_default()
    };
    let (event, url) = (text("event"), text("url"));

    let idempotency = key.map(|key| key.with_body(&body));
    let retry = Retry::safe_if_idempotent(idempotency.as_ref());
    let message = CreateWebhookRequest {
        event,
        url,
        violations: violations.to_proto(),
        idempotency,
    };
    let response = gateway
        .core
        .call_with_metadata(options, retry, message, |core, message| async {
            WebhooksClient::new(core).create_webhook(message).await
        })
        .await
        .map_err(|error| violations.translate(error))?;

    idempotency::respond(response, |webhook| {
        let webhook = Webhook::try_from(webhook)?.with_context();
        json_ld::created(&gateway.public_url, webhook.node.iri(), &webhook).map(no_store)
    })
}

/// Forbids caching a response with a secret.
fn no_store(mut response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /api/webhooks/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = GetWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    let webhook = gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            WebhooksClient::new(core).get_webhook(message).await
        })
        .await?;

    show(webhook)
}

/// `GET /api/webhooks`
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = ListWebhooksRequest::default();
    let response = gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            WebhooksClient::new(core).list_webhooks(message).await
        })
        .await?;

    let mut violations = request.violations();
    let size = collection::read_page_size(&request, &mut violations);
    // Core checks the sizes of the lists that it divides into pages.
    if size.is_some_and(|size| !(1..=proto::limits::MAX_PAGE_SIZE).contains(&size)) {
        let description = format!("must be from 1 to {}", proto::limits::MAX_PAGE_SIZE);
        violations.add("page_size", "OUT_OF_RANGE", description);
    }
    if let Some(error) = violations.into_error() {
        return Err(error);
    }
    let webhooks = response.webhooks.into_iter().map(Webhook::try_from);
    json_ld::ok(&collection::Collection::whole(
        CONTEXT,
        "/api/webhooks",
        webhooks.collect::<Result<_, _>>()?,
    ))
}

/// `DELETE /api/webhooks/{id}`
pub(crate) async fn delete(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    request.check_query()?;
    let message = DeleteWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    gateway
        .core
        .call(
            request.call_options()?,
            Retry::Unsafe,
            message,
            |core, message| async { WebhooksClient::new(core).delete_webhook(message).await },
        )
        .await?;

    Ok(json_ld::no_content())
}

/// `POST /api/webhooks/{id}/enable`
pub(crate) async fn enable(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = |name, idempotency| EnableWebhookRequest { name, idempotency };
    call_by_name(gateway, request, message, |core, message| async {
        WebhooksClient::new(core).enable_webhook(message).await
    })
    .await
}

/// `POST /api/webhooks/{id}/disable`
pub(crate) async fn disable(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = |name, idempotency| DisableWebhookRequest { name, idempotency };
    call_by_name(gateway, request, message, |core, message| async {
        WebhooksClient::new(core).disable_webhook(message).await
    })
    .await
}

/// `POST /api/webhooks/{id}/confirm_secret`
pub(crate) async fn confirm_secret(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = |name, idempotency| ConfirmWebhookSecretRequest { name, idempotency };
    call_by_name(gateway, request, message, |core, message| async {
        WebhooksClient::new(core)
            .confirm_webhook_secret(message)
            .await
    })
    .await
}

/// Calls an RPC that takes only the webhook's name and an idempotency key.
async fn call_by_name<M, F>(
    gateway: Arc<Gateway>,
    request: Request,
    message: impl FnOnce(String, Option<Idempotency>) -> M,
    rpc: impl Fn(CoreChannel, tonic::Request<M>) -> F,
) -> HandlerResult
where
    M: Clone,
    F: Future<Output = Result<tonic::Response<proto::Webhook>, tonic::Status>>,
{
    let options = request.call_options()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let message = message(name, idempotency::for_unused_body(request)?);

    let response = gateway
        .core
        .call_with_metadata(options, Retry::Safe, message, rpc)
        .await?;

    idempotency::respond(response, show)
}

/// `POST /api/webhooks/{id}/rotate_secret`
pub(crate) async fn rotate_secret(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let options = request.call_options()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let mut violations = request.violations();
    violations.add_alias("overlap_seconds".to_owned(), "overlap");
    let key = idempotency::Key::from_request(&request, &mut violations);
    let body = request.optional_json()?;
    let value = match &body {
        Some(body) => violations.parse(body, Shape::Class(&SECRET_ROTATION)),
        None => Value::Null,
    };
    let overlap_seconds =
        Object::root(&value).integer("overlap", "overlap_seconds", &mut violations);

    let idempotency = key.map(|key| key.with_body(&body.unwrap_or_default()));
    let retry = Retry::safe_if_idempotent(idempotency.as_ref());
    let message = RotateWebhookSecretRequest {
        name,
        overlap_seconds,
        violations: violations.to_proto(),
        idempotency,
    };
    let response = gateway
        .core
        .call_with_metadata(options, retry, message, |core, message| async {
            WebhooksClient::new(core)
                .rotate_webhook_secret(message)
                .await
        })
        .await
        .map_err(|error| violations.translate(error))?;

    idempotency::respond(response, |webhook| show(webhook).map(no_store))
}

fn show(webhook: proto::Webhook) -> HandlerResult {
    json_ld::ok(&Webhook::try_from(webhook)?.with_context())
}

impl Webhook {
    fn with_context(mut self) -> Self {
        self.node.set_context(CONTEXT);
        self
    }
}

impl TryFrom<proto::Webhook> for Webhook {
    type Error = Error;

    fn try_from(webhook: proto::Webhook) -> Result<Self, Error> {
        let zone = StoreTimeZone::named(&webhook.time_zone);
        let disabled_reason = match webhook.disabled_reason() {
            DisabledReason::Unspecified => None,
            DisabledReason::Client => Some("client"),
            DisabledReason::Operator => Some("operator"),
            DisabledReason::Gone => Some("gone"),
            DisabledReason::Failing => Some("failing"),
        };
        Ok(Self {
            node: Node::new("Webhook", Collection::Webhooks, &webhook.name),
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
