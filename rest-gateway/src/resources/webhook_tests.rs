//! `/api/webhooks/{id}/test`

use std::sync::Arc;

use proto::{
    TestWebhookRequest,
    iri::{self, Collection},
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{
    core::Repeat,
    json_ld,
    request::Request,
    routes::{Answer, Gateway},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookTest {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    webhook: String,
    url: String,
    /// The header `webhook-id`.
    webhook_id: String,
    event: String,
    object: String,
    delivered: bool,
    /// Null if it was delivered, and the next.
    failure: Option<String>,
    failure_detail: Option<String>,
    /// Null if it did not come so far, and the next.
    dns_milliseconds: Option<f64>,
    connect_milliseconds: Option<f64>,
    tls_milliseconds: Option<f64>,
    tls_version: Option<String>,
    milliseconds: i64,
    status_code: Option<u32>,
    answer: String,
}

/// `POST /api/webhooks/{id}/test`: answers once the receiver has, or 15 s later.
pub(crate) async fn run(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let message = TestWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
    };
    request.check_empty()?;

    let test = gateway
        .core
        .call(call, Repeat::Harmful, message, |core, message| async {
            WebhooksClient::new(core).test_webhook(message).await
        })
        .await?;

    json_ld::ok(&WebhookTest::from(test))
}

impl From<proto::WebhookTest> for WebhookTest {
    fn from(test: proto::WebhookTest) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            context: "/api/contexts/WebhookTest",
            ld_type: "WebhookTest",
            webhook: iri::of(&test.webhook),
            url: test.url,
            webhook_id: test.id,
            event: test.event,
            object: iri::of(&test.object),
            delivered: test.failure.is_empty(),
            failure: said(test.failure),
            failure_detail: said(test.detail),
            dns_milliseconds: test.dns.map(milliseconds),
            connect_milliseconds: test.connect.map(milliseconds),
            tls_milliseconds: test.tls.map(milliseconds),
            tls_version: said(test.tls_version),
            milliseconds: microseconds(test.duration.unwrap_or_default()) / 1000,
            status_code: test.status,
            answer: test.answer,
        }
    }
}

/// To the microsecond: over a short way, phases take less than a millisecond.
fn milliseconds(duration: prost_types::Duration) -> f64 {
    // No phase lasts so long that a double could not hold it.
    let microseconds = i32::try_from(microseconds(duration)).unwrap_or(i32::MAX);
    f64::from(microseconds) / 1000.0
}

fn microseconds(duration: prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1000)
}
