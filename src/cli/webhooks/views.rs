//! Printed forms of webhooks and notifications.

use proto::{RecoverWebhookResponse, Webhook, WebhookAttempt, WebhookNotification, iri};
use serde_json::json;

use crate::cli::{
    id,
    output::{self, View, enum_name, non_empty},
};

pub(super) fn webhook(webhook: Webhook) -> View {
    let instant = |timestamp| output::instant(timestamp, &webhook.time_zone);
    let disabled_at = instant(webhook.disable_time);
    let reason = enum_name(webhook.disabled_reason().as_str_name(), "DISABLED_REASON_");
    let disabled = disabled_at.as_ref().map(|at| format!("{at} ({reason})"));
    let overlap_ends_at = instant(webhook.overlap_end_time);
    View::default()
        .field("id", id::of(&webhook.name))
        .json("iri", iri::of(&webhook.name))
        .field("event", webhook.event)
        .field("url", webhook.url)
        // The ID of its API client.
        .field("client", id::of(&webhook.api_client))
        .json("enabled", disabled_at.is_none())
        .json("disabled_reason", disabled_at.as_ref().map(|_| reason))
        .json("disabled_at", disabled_at)
        .text("disabled", disabled.unwrap_or_default())
        .json("created_at", instant(webhook.create_time))
        .named(
            "secret_overlap_ends_at",
            "old secret until",
            overlap_ends_at,
        )
        // Shown only when it is created.
        .optional("secret", non_empty(webhook.secret))
}

pub(super) fn notification(notification: &WebhookNotification) -> View {
    let instant = |timestamp| output::instant(timestamp, &notification.time_zone);
    let state = enum_name(notification.state().as_str_name(), "STATE_");
    let attempts = &notification.attempts;
    let results: Vec<_> = attempts.iter().map(result).collect();
    let attempts = attempts.iter().map(|attempt| {
        json!({
            "number": attempt.number,
            "ended_at": instant(attempt.end_time),
            "milliseconds": attempt.duration_microseconds / 1000,
            // Null if delivered.
            "failure": non_empty(&*attempt.failure),
            "status": attempt.status,
            "answer": attempt.response_body,
        })
    });
    View::default()
        // Also the header `webhook-id`.
        .field("id", id::of(&notification.name))
        .field("event", &*notification.event)
        .field("object", iri::of(&notification.object))
        .field("state", state)
        .field("created_at", instant(notification.create_time))
        .field("next_attempt_at", instant(notification.next_attempt_time))
        .field("finished_at", instant(notification.finish_time))
        .json("attempts", attempts.collect::<Vec<_>>())
        .text("attempts", results.join(" "))
}

/// The response's status, or the name of the failure.
fn result(attempt: &WebhookAttempt) -> String {
    match (&*attempt.failure, attempt.status) {
        ("" | "status", Some(status)) => status.to_string(),
        (failure, _) => failure.to_owned(),
    }
}

pub(super) fn recovery(recovery: &RecoverWebhookResponse) -> View {
    View::default()
        .field(
            "since",
            output::instant(recovery.since, &recovery.time_zone),
        )
        .field("recovered", recovery.recovered)
}
