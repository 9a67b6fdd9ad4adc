//! Printed form of the result of `delivery webhooks test`.

use proto::{WebhookTest, iri};
use serde::Serialize;

use crate::cli::{
    id,
    output::{self, Resource},
};

#[derive(Serialize)]
pub(super) struct TestResult {
    /// ID of the webhook.
    webhook: String,
    url: String,
    /// The header `webhook-id`.
    webhook_id: String,
    event: String,
    /// IRI.
    object: String,
    delivered: bool,
    /// Null if delivered.
    failure: Option<String>,
    failure_detail: Option<String>,
    /// Microseconds, like the following durations; null if not reached.
    dns: Option<i64>,
    connect: Option<i64>,
    tls: Option<i64>,
    tls_version: Option<String>,
    total: i64,
    status: Option<u32>,
    #[serde(rename = "answer")]
    response_body: String,
}

impl From<WebhookTest> for TestResult {
    fn from(test: WebhookTest) -> Self {
        let non_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            webhook: id::of(&test.webhook).to_owned(),
            url: test.url,
            webhook_id: test.id,
            event: test.event,
            object: iri::of(&test.object),
            delivered: test.failure.is_empty(),
            failure: non_empty(test.failure),
            failure_detail: non_empty(test.detail),
            dns: test.dns.map(microseconds),
            connect: test.connect.map(microseconds),
            tls: test.tls.map(microseconds),
            tls_version: non_empty(test.tls_version),
            total: microseconds(test.duration.unwrap_or_default()),
            status: test.status,
            response_body: test.response_body,
        }
    }
}

impl TestResult {
    /// Prints the result. Fails if the receiver has not accepted the request.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        output::one(json, self)?;
        match self.failure_detail.as_ref().or(self.failure.as_ref()) {
            Some(reason) if !self.delivered => anyhow::bail!("{reason}"),
            _ => Ok(()),
        }
    }
}

impl Resource for TestResult {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let result = self.failure.as_deref().unwrap_or("delivered").to_owned();
        let duration = |phase: Option<i64>| phase.map(to_milliseconds).unwrap_or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            ("webhook", self.webhook.clone()),
            ("url", self.url.clone()),
            ("webhook-id", self.webhook_id.clone()),
            ("result", result),
            ("failure detail", text(&self.failure_detail)),
            ("dns", duration(self.dns)),
            ("connect", duration(self.connect)),
            ("tls", duration(self.tls)),
            ("tls version", text(&self.tls_version)),
            ("total", to_milliseconds(self.total)),
            (
                "status",
                self.status
                    .map(|status| status.to_string())
                    .unwrap_or_default(),
            ),
            ("response body", self.response_body.clone()),
        ]
    }
}

fn microseconds(duration: prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1000)
}

fn to_milliseconds(microseconds: i64) -> String {
    format!("{}.{:03} ms", microseconds / 1000, microseconds % 1000)
}
