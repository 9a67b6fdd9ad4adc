//! Printed form of the result of `delivery webhooks test`.

use proto::{WebhookTest, iri};

use crate::cli::{
    id,
    output::{self, View, non_empty},
};

/// Prints the result. Fails if the receiver has not accepted the request.
pub(super) fn print(json: bool, test: WebhookTest) -> anyhow::Result<()> {
    let (failure, detail) = (non_empty(test.failure), non_empty(test.detail));
    let duration = |view: View, name: &'static str, phase: Option<prost_types::Duration>| {
        let microseconds = phase.map(microseconds);
        view.json(name, microseconds)
            .text(name, microseconds.map(to_milliseconds).unwrap_or_default())
    };
    let mut view = View::default()
        // The ID of the webhook.
        .field("webhook", id::of(&test.webhook))
        .field("url", test.url)
        .named("webhook_id", "webhook-id", test.id)
        .json("event", test.event)
        .json("object", iri::of(&test.object))
        .json("delivered", failure.is_none())
        // Null if delivered.
        .json("failure", failure.clone())
        .text("result", failure.as_deref().unwrap_or("delivered"))
        .field("failure_detail", detail.clone());
    // Microseconds; null if not reached.
    view = duration(view, "dns", test.dns);
    view = duration(view, "connect", test.connect);
    view = duration(view, "tls", test.tls);
    view = view.field("tls_version", non_empty(test.tls_version));
    view = duration(view, "total", Some(test.duration.unwrap_or_default()))
        .field("status", test.status)
        .named("answer", "response body", test.response_body);
    output::one(json, view)?;
    match failure {
        Some(failure) => anyhow::bail!(detail.unwrap_or(failure)),
        None => Ok(()),
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
