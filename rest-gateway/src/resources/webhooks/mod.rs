//! `/api/webhooks`

pub(crate) mod notifications;

use std::mem;

use bytes::Bytes;
use http::{HeaderValue, Response, header::CACHE_CONTROL};
use proto::{
    ConfirmWebhookSecretRequest, CreateWebhookRequest, DeleteWebhookRequest, DisableWebhookRequest,
    EnableWebhookRequest, GetWebhookRequest, Idempotency, ListWebhooksRequest,
    RotateWebhookSecretRequest, TestWebhookRequest,
    iri::{self, Collection},
    microseconds,
    webhook::DisabledReason,
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{
    body_reader::Object,
    core_pool::{CoreChannel, rpc},
    error::{Error, Violation},
    representation::{
        collection,
        json_ld::{self, Node, StoreTimeZone},
        language,
    },
    request::{self, HandlerResult, Request},
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
    /// Of the request that creates it; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
}

/// A sample notification that was sent, and its outcome.
#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename_all = "camelCase")]
struct WebhookTest {
    webhook: String,
    url: String,
    /// The header `webhook-id`.
    webhook_id: String,
    event: String,
    object: String,
    delivered: bool,
    /// Null if delivered, like `failure_detail`.
    failure: Option<String>,
    failure_detail: Option<String>,
    /// Null if the test did not reach this phase, like the following three members.
    dns_milliseconds: Option<f64>,
    connect_milliseconds: Option<f64>,
    tls_milliseconds: Option<f64>,
    tls_version: Option<String>,
    milliseconds: i64,
    status_code: Option<u32>,
    #[serde(rename = "answer")]
    response_body: String,
}

/// `POST /api/webhooks`
pub(crate) async fn create(mut request: Request) -> HandlerResult {
    let webhook = Object::root(&request.json);
    let mut text = |member| {
        let text = webhook.text(member, member, &mut request.violations);
        text.unwrap_or_default()
    };
    let message = CreateWebhookRequest {
        event: text("event"),
        url: text("url"),
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let response = request
        .write(message, rpc!(WebhooksClient.create_webhook))
        .await?;

    request::respond(response, |mut webhook| {
        let location = request.url_of(&webhook.name);
        let (warnings, language) = request.warnings(mem::take(&mut webhook.warnings));
        let webhook = Webhook {
            warnings,
            ..webhook.try_into()?
        };
        let response = json_ld::created(&location, CONTEXT, &webhook).map(no_store)?;
        Ok(language::declare(response, language.as_deref()))
    })
}

/// Forbids caching a response with a secret.
fn no_store(mut response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /api/webhooks/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Webhooks.name(&request.parameter);
    let webhook = request
        .call(GetWebhookRequest { name }, rpc!(WebhooksClient.get_webhook))
        .await?;

    show(webhook)
}

/// `GET /api/webhooks`
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    let message = ListWebhooksRequest::default();
    let response = request
        .call(message, rpc!(WebhooksClient.list_webhooks))
        .await?;

    let size = collection::read_page_size(&mut request);
    // Core checks the sizes of the lists that it divides into pages.
    if size.is_some_and(|size| !(1..=proto::limits::MAX_PAGE_SIZE).contains(&size)) {
        let description = format!("must be from 1 to {}", proto::limits::MAX_PAGE_SIZE);
        request
            .violations
            .add("page_size", "OUT_OF_RANGE", description);
    }
    request.violations.check()?;
    let shown = response.webhooks.into_iter().map(Webhook::try_from);
    let webhooks = shown.collect::<Result<_, _>>()?;
    json_ld::ok(
        CONTEXT,
        &collection::Collection::whole("/api/webhooks", webhooks),
    )
}

/// `DELETE /api/webhooks/{id}`
pub(crate) async fn delete(request: Request) -> HandlerResult {
    let message = DeleteWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    request
        .write(message, rpc!(WebhooksClient.delete_webhook))
        .await?;

    Ok(json_ld::no_content())
}

/// `POST /api/webhooks/{id}/enable`
pub(crate) async fn enable(request: Request) -> HandlerResult {
    let message = |name, idempotency| EnableWebhookRequest { name, idempotency };
    call_by_name(request, message, rpc!(WebhooksClient.enable_webhook)).await
}

/// `POST /api/webhooks/{id}/disable`
pub(crate) async fn disable(request: Request) -> HandlerResult {
    let message = |name, idempotency| DisableWebhookRequest { name, idempotency };
    call_by_name(request, message, rpc!(WebhooksClient.disable_webhook)).await
}

/// `POST /api/webhooks/{id}/confirm_secret`
pub(crate) async fn confirm_secret(request: Request) -> HandlerResult {
    let message = |name, idempotency| ConfirmWebhookSecretRequest { name, idempotency };
    call_by_name(
        request,
        message,
        rpc!(WebhooksClient.confirm_webhook_secret),
    )
    .await
}

/// Calls an RPC that takes only the webhook's name and an idempotency key.
async fn call_by_name<M: Clone>(
    request: Request,
    message: impl FnOnce(String, Option<Idempotency>) -> M,
    rpc: impl AsyncFn(
        CoreChannel,
        tonic::Request<M>,
    ) -> Result<tonic::Response<proto::Webhook>, tonic::Status>,
) -> HandlerResult {
    let name = Collection::Webhooks.name(&request.parameter);
    let message = message(name, request.idempotency.clone());
    let response = request.send(message, true, rpc).await?;

    request::respond(response, show)
}

/// `POST /api/webhooks/{id}/rotate_secret`
pub(crate) async fn rotate_secret(mut request: Request) -> HandlerResult {
    let violations = &mut request.violations;
    violations.add_alias("overlap_seconds".to_owned(), "overlap");
    let body = Object::root(&request.json);
    let message = RotateWebhookSecretRequest {
        name: Collection::Webhooks.name(&request.parameter),
        overlap_seconds: body.integer("overlap", "overlap_seconds", violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let response = request
        .write(message, rpc!(WebhooksClient.rotate_webhook_secret))
        .await?;

    request::respond(response, |webhook| show(webhook).map(no_store))
}

/// `POST /api/webhooks/{id}/test`: responds when the receiver has responded, or after 15 s.
pub(crate) async fn test(request: Request) -> HandlerResult {
    let message = TestWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    let test = request
        .write(message, rpc!(WebhooksClient.test_webhook))
        .await?;

    json_ld::ok(
        "/api/contexts/WebhookTest",
        &WebhookTest::from(test.into_inner()),
    )
}

fn show(webhook: proto::Webhook) -> HandlerResult {
    json_ld::ok(CONTEXT, &Webhook::try_from(webhook)?)
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
            warnings: Vec::new(),
        })
    }
}

impl From<proto::WebhookTest> for WebhookTest {
    fn from(test: proto::WebhookTest) -> Self {
        let non_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            webhook: iri::of(&test.webhook),
            url: test.url,
            webhook_id: test.id,
            event: test.event,
            object: iri::of(&test.object),
            delivered: test.failure.is_empty(),
            failure: non_empty(test.failure),
            failure_detail: non_empty(test.detail),
            dns_milliseconds: test.dns.map(milliseconds),
            connect_milliseconds: test.connect.map(milliseconds),
            tls_milliseconds: test.tls.map(milliseconds),
            tls_version: non_empty(test.tls_version),
            milliseconds: microseconds(test.duration.unwrap_or_default()) / 1000,
            status_code: test.status,
            response_body: test.response_body,
        }
    }
}

/// Milliseconds with a fraction, because phases over loopback take less than one.
fn milliseconds(duration: prost_types::Duration) -> f64 {
    // A test's timeout in microseconds fits in an `i32`.
    let microseconds = i32::try_from(microseconds(duration)).unwrap_or(i32::MAX);
    f64::from(microseconds) / 1000.0
}
