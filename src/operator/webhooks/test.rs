//! How trying a webhook went, as `delivery webhooks test` prints it.

use proto::{WebhookTest, iri};
use serde::Serialize;

use crate::operator::{id, reply::Resource};

#[derive(Serialize)]
pub(super) struct Test {
    /// Id of the webhook.
    webhook: String,
    url: String,
    /// The header `webhook-id`.
    webhook_id: String,
    event: String,
    /// IRI.
    object: String,
    delivered: bool,
    /// None if it was delivered.
    failure: Option<String>,
    failure_detail: Option<String>,
    /// Microseconds, as the others; none if it came not so far.
    dns: Option<i64>,
    connect: Option<i64>,
    tls: Option<i64>,
    tls_version: Option<String>,
    total: i64,
    status: Option<u32>,
    answer: String,
}

impl From<WebhookTest> for Test {
    fn from(test: WebhookTest) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            webhook: id::of(&test.webhook).to_owned(),
            url: test.url,
            webhook_id: test.id,
            event: test.event,
            object: iri::of(&test.object),
            delivered: test.failure.is_empty(),
            failure: said(test.failure),
            failure_detail: said(test.detail),
            dns: test.dns.map(microseconds),
            connect: test.connect.map(microseconds),
            tls: test.tls.map(microseconds),
            tls_version: said(test.tls_version),
            total: microseconds(test.duration.unwrap_or_default()),
            status: test.status,
            answer: test.answer,
        }
    }
}

impl Resource for Test {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let result = self.failure.as_deref().unwrap_or("delivered").to_owned();
        let took = |phase: Option<i64>| phase.map(in_milliseconds).unwrap_or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            ("webhook", self.webhook.clone()),
            ("url", self.url.clone()),
            ("webhook-id", self.webhook_id.clone()),
            ("result", result),
            ("because", text(&self.failure_detail)),
            ("dns", took(self.dns)),
            ("connect", took(self.connect)),
            ("tls", took(self.tls)),
            ("tls version", text(&self.tls_version)),
            ("in all", in_milliseconds(self.total)),
            (
                "status",
                self.status
                    .map(|status| status.to_string())
                    .unwrap_or_default(),
            ),
            ("answer", self.answer.clone()),
        ]
    }
}

fn microseconds(duration: prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1000)
}

fn in_milliseconds(microseconds: i64) -> String {
    format!("{}.{:03} ms", microseconds / 1000, microseconds % 1000)
}
