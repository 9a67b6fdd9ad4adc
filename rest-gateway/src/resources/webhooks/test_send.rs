//! `/api/webhooks/{id}/test`: sends a sample notification and reports the outcome.

use proto::{
    TestWebhookRequest,
    iri::{self, Collection},
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{core_pool::rpc, gateway::HandlerResult, representation::json_ld, request::Request};

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

/// `POST /api/webhooks/{id}/test`: responds when the receiver has responded, or after 15 s.
pub(crate) async fn send(request: Request) -> HandlerResult {
    let message = TestWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    let test = request
        .write(message, false, rpc!(WebhooksClient.test_webhook))
        .await?;

    let test = WebhookTest::from(test.into_inner());
    json_ld::ok("/api/contexts/WebhookTest", &test)
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

fn microseconds(duration: prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1000)
}
