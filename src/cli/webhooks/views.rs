//! Printed forms of webhooks and notifications.

use proto::{
    RecoverWebhookResponse, WebhookAttempt, WebhookNotification, iri, webhook::DisabledReason,
    webhook_notification::State,
};
use serde::Serialize;

use crate::cli::{
    id,
    output::{self, Resource},
};

#[derive(Serialize)]
pub(super) struct Webhook {
    id: String,
    iri: String,
    /// ID of its API client.
    client: String,
    event: String,
    url: String,
    /// Shown only when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    secret_overlap_ends_at: Option<String>,
    enabled: bool,
    disabled_at: Option<String>,
    disabled_reason: Option<&'static str>,
    created_at: Option<String>,
}

impl From<proto::Webhook> for Webhook {
    fn from(webhook: proto::Webhook) -> Self {
        let instant = |timestamp| output::instant(timestamp, &webhook.time_zone);
        Self {
            id: id::of(&webhook.name).to_owned(),
            iri: iri::of(&webhook.name),
            client: id::of(&webhook.api_client).to_owned(),
            secret_overlap_ends_at: instant(webhook.overlap_end_time.as_ref()),
            enabled: webhook.disable_time.is_none(),
            disabled_at: instant(webhook.disable_time.as_ref()),
            disabled_reason: match webhook.disabled_reason() {
                DisabledReason::Unspecified => None,
                DisabledReason::Client => Some("client"),
                DisabledReason::Operator => Some("operator"),
                DisabledReason::Gone => Some("gone"),
                DisabledReason::Failing => Some("failing"),
            },
            created_at: instant(webhook.create_time.as_ref()),
            event: webhook.event,
            url: webhook.url,
            secret: Some(webhook.secret).filter(|secret| !secret.is_empty()),
        }
    }
}

impl Resource for Webhook {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let disabled = match (&self.disabled_at, self.disabled_reason) {
            (Some(at), Some(reason)) => format!("{at} ({reason})"),
            (Some(at), None) => at.clone(),
            (None, _) => String::new(),
        };
        let mut fields = vec![
            ("id", self.id.clone()),
            ("event", self.event.clone()),
            ("url", self.url.clone()),
            ("client", self.client.clone()),
            ("disabled", disabled),
            (
                "old secret until",
                self.secret_overlap_ends_at.clone().unwrap_or_default(),
            ),
        ];
        if let Some(secret) = &self.secret {
            fields.push(("secret", secret.clone()));
        }
        fields
    }
}

#[derive(Serialize)]
pub(super) struct Notification {
    /// Also the header `webhook-id`.
    id: String,
    event: String,
    /// IRI.
    object: String,
    state: &'static str,
    next_attempt_at: Option<String>,
    created_at: Option<String>,
    finished_at: Option<String>,
    attempts: Vec<Attempt>,
}

#[derive(Serialize)]
struct Attempt {
    number: u32,
    ended_at: Option<String>,
    milliseconds: i64,
    /// Null if delivered.
    failure: Option<String>,
    status: Option<u32>,
    #[serde(rename = "answer")]
    response_body: String,
}

impl From<WebhookNotification> for Notification {
    fn from(notification: WebhookNotification) -> Self {
        let zone = notification.time_zone.as_str();
        let attempts = notification.attempts.iter();
        Self {
            id: id::of(&notification.name).to_owned(),
            object: iri::of(&notification.object),
            state: match notification.state() {
                State::Pending => "pending",
                State::Failed => "failed",
                State::Delivered => "delivered",
                State::Exhausted => "exhausted",
                State::Cancelled => "cancelled",
                State::Unspecified => "unknown",
            },
            next_attempt_at: output::instant(notification.next_attempt_time.as_ref(), zone),
            created_at: output::instant(notification.create_time.as_ref(), zone),
            finished_at: output::instant(notification.finish_time.as_ref(), zone),
            attempts: attempts
                .map(|attempt| Attempt::new(attempt, zone))
                .collect(),
            event: notification.event,
        }
    }
}

impl Attempt {
    fn new(attempt: &WebhookAttempt, zone: &str) -> Self {
        Self {
            number: attempt.number,
            ended_at: output::instant(attempt.end_time.as_ref(), zone),
            milliseconds: attempt.duration_microseconds / 1000,
            failure: Some(attempt.failure.clone()).filter(|failure| !failure.is_empty()),
            status: attempt.status,
            response_body: attempt.response_body.clone(),
        }
    }

    /// The response's status, or the name of the failure.
    fn result(&self) -> String {
        let status = self.status.map(|status| status.to_string());
        match (&self.failure, status) {
            (Some(failure), Some(status)) if failure == "status" => status,
            (Some(failure), _) => failure.clone(),
            (None, status) => status.unwrap_or_default(),
        }
    }
}

impl Resource for Notification {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let results: Vec<_> = self.attempts.iter().map(Attempt::result).collect();
        let instant = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            ("id", self.id.clone()),
            ("event", self.event.clone()),
            ("object", self.object.clone()),
            ("state", self.state.to_owned()),
            ("created", instant(&self.created_at)),
            ("next attempt", instant(&self.next_attempt_at)),
            ("finished", instant(&self.finished_at)),
            ("attempts", results.join(" ")),
        ]
    }
}

#[derive(Serialize)]
pub(super) struct Recovery {
    since: Option<String>,
    recovered: u64,
}

impl From<RecoverWebhookResponse> for Recovery {
    fn from(recovery: RecoverWebhookResponse) -> Self {
        Self {
            since: output::instant(recovery.since.as_ref(), &recovery.time_zone),
            recovered: recovery.recovered,
        }
    }
}

impl Resource for Recovery {
    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("since", self.since.clone().unwrap_or_default()),
            ("recovered", self.recovered.to_string()),
        ]
    }
}
