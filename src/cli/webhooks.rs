//! `delivery webhooks`: inspects, tests and repairs webhooks and their notifications.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use process::{duration, number};
use proto::{
    ConfirmWebhookSecretRequest, DisableWebhookRequest, EnableWebhookRequest,
    ListWebhookNotificationsRequest, ListWebhooksRequest, RecoverWebhookRequest,
    RecoverWebhookResponse, ResendWebhookNotificationRequest, RotateWebhookSecretRequest,
    TestWebhookRequest, Webhook, WebhookAttempt, WebhookNotification, WebhookTest,
    iri::{self, Collection},
    microseconds,
};
use serde_json::json;

use crate::cli::{
    access::{Core, CoreCommand},
    id,
    output::{self, View, enum_name, non_empty},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the webhooks of a store, oldest first, or those of all stores that fail
    List {
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        #[arg(required_unless_present = "failing")]
        store: Option<String>,
        /// The webhooks of all stores whose last attempts failed, for longest first, with the last error
        #[arg(long, conflicts_with = "store")]
        failing: bool,
    },
    /// List a webhook's notifications with their attempts, newest first
    Attempts {
        #[arg(value_parser = id::parser(Collection::Webhooks))]
        id: String,
        /// Only notifications in this state; repeatable
        #[arg(long = "state", value_name = "STATE", value_parser = ["pending", "failed", "delivered", "exhausted", "cancelled"])]
        states: Vec<String>,
        /// Maximum number of notifications
        #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = number::within(1_u32, 100, 30))]
        limit: u32,
    },
    /// Resend a notification
    Resend {
        /// ID of the notification, as in the header `webhook-id`
        #[arg(value_parser = id::parser(Collection::Notifications))]
        id: String,
    },
    /// Resend failed notifications, and send missed events, since a time
    Recover {
        #[arg(value_parser = id::parser(Collection::Webhooks))]
        id: String,
        /// Start, such as 2020-04-02T12:00:00+02:00
        #[arg(long, value_name = "TIME")]
        since: Timestamp,
    },
    /// Rotate a webhook's secret and print the new one, which is shown only once
    RotateSecret {
        #[arg(value_parser = id::parser(Collection::Webhooks))]
        id: String,
        /// How long the old secret stays valid: by default a day; `0` if it is compromised
        #[arg(long, value_name = "DURATION", value_parser = duration::parse_or_zero)]
        overlap: Option<Duration>,
    },
    /// Confirm a webhook's new secret and invalidate the old ones
    ConfirmSecret(WebhookId),
    /// Send a webhook a signed test request and print the result
    ///
    /// The exit status is 1 if the receiver does not accept the request.
    Test(WebhookId),
    /// Enable a webhook
    Enable(WebhookId),
    /// Disable a webhook and cancel its pending notifications
    Disable(WebhookId),
}

#[derive(Args, Debug)]
pub(crate) struct WebhookId {
    #[arg(value_parser = id::parser(Collection::Webhooks))]
    id: String,
}

impl Command {
    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::List { .. } | Self::Attempts { .. } => "platform:read",
            _ => "admin",
        }
    }
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect(self.command.scope()).await?;
        let json = self.access.json;

        let webhook = match self.command {
            Command::List { failing: true, .. } => return list_failing(&core, json).await,
            Command::List { store, .. } => {
                let request = ListWebhooksRequest {
                    store: store.context("a store is required")?,
                    failing: false,
                };
                let listed = core.call(request).await?;
                return output::many(json, listed.webhooks.into_iter().map(webhook_view));
            }
            Command::Attempts { id, states, limit } => {
                let request = ListWebhookNotificationsRequest {
                    webhook: id,
                    states,
                    page_size: Some(limit),
                    with_attempts: true,
                    ..ListWebhookNotificationsRequest::default()
                };
                let listed = core.call(request).await?;
                let notifications = listed.notifications.iter();
                return output::many(json, notifications.map(notification_view));
            }
            Command::Resend { id: name } => {
                let idempotency = None;
                let message = ResendWebhookNotificationRequest { name, idempotency };
                let sent = core.write(message).await?;
                return output::one(json, notification_view(&sent));
            }
            Command::Recover { id, since } => {
                let message = RecoverWebhookRequest {
                    name: id,
                    since: Some(output::timestamp(since)),
                    violations: Vec::new(),
                    idempotency: None,
                };
                let recovery = core.write(message).await?;
                return output::one(json, recovery_view(&recovery));
            }
            Command::Test(WebhookId { id: name }) => {
                let request = TestWebhookRequest { name };
                let tested = core.call(request).await?;
                return print_test(json, tested);
            }
            Command::RotateSecret { id, overlap } => {
                let message = RotateWebhookSecretRequest {
                    name: id,
                    overlap_seconds: overlap
                        .map(|overlap| i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX)),
                    violations: Vec::new(),
                    idempotency: None,
                };
                core.write(message).await
            }
            Command::ConfirmSecret(WebhookId { id: name }) => {
                let idempotency = None;
                let message = ConfirmWebhookSecretRequest { name, idempotency };
                core.write(message).await
            }
            Command::Enable(WebhookId { id: name }) => {
                let idempotency = None;
                let message = EnableWebhookRequest { name, idempotency };
                core.write(message).await
            }
            Command::Disable(WebhookId { id: name }) => {
                let idempotency = None;
                let message = DisableWebhookRequest { name, idempotency };
                core.write(message).await
            }
        };
        output::one(json, webhook_view(webhook?))
    }
}

/// Prints the failing webhooks of all stores, each with its last error.
async fn list_failing(core: &Core, json: bool) -> anyhow::Result<()> {
    let request = ListWebhooksRequest {
        failing: true,
        ..ListWebhooksRequest::default()
    };
    let mut views = Vec::new();
    for webhook in core.call(request).await?.webhooks {
        let request = ListWebhookNotificationsRequest {
            webhook: webhook.name.clone(),
            states: ["failed", "exhausted"].map(str::to_owned).into(),
            with_attempts: true,
            ..ListWebhookNotificationsRequest::default()
        };
        let notifications = core.call(request).await?.notifications;
        let attempts = notifications.iter().flat_map(|sent| &sent.attempts);
        let failed = attempts.filter(|attempt| !attempt.failure.is_empty());
        let last = failed.max_by_key(|attempt| {
            let ended = attempt.end_time.unwrap_or_default();
            (ended.seconds, ended.nanos)
        });
        let instant = |timestamp| output::instant(timestamp, &webhook.time_zone);
        let reason = enum_name(webhook.disabled_reason().as_str_name(), "DISABLED_REASON_");
        let disabled_reason = webhook.disable_time.map(|_| reason);
        views.push(
            View::default()
                .field("id", id::of(&webhook.name))
                .field("store", id::of(&webhook.store))
                .field("event", &*webhook.event)
                .field("url", &*webhook.url)
                .named("failing_since", "since", instant(webhook.failing_since))
                .named("last_error", "last error", last.map(attempt_result))
                .field(
                    "last_attempt_at",
                    last.and_then(|attempt| instant(attempt.end_time)),
                )
                .named("disabled_reason", "disabled", disabled_reason),
        );
    }
    output::many(json, views)
}

fn webhook_view(webhook: Webhook) -> View {
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

fn notification_view(notification: &WebhookNotification) -> View {
    let instant = |timestamp| output::instant(timestamp, &notification.time_zone);
    let state = enum_name(notification.state().as_str_name(), "STATE_");
    let results = notification.attempts.iter().map(attempt_result);
    let attempts = notification.attempts.iter().map(|attempt| {
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
        .text("attempts", results.collect::<Vec<_>>().join(" "))
}

/// The response's status, or the name of the failure.
fn attempt_result(attempt: &WebhookAttempt) -> String {
    match (&*attempt.failure, attempt.status) {
        ("" | "status", Some(status)) => status.to_string(),
        (failure, _) => failure.to_owned(),
    }
}

fn recovery_view(recovery: &RecoverWebhookResponse) -> View {
    View::default()
        .field(
            "since",
            output::instant(recovery.since, &recovery.time_zone),
        )
        .field("recovered", recovery.recovered)
}

/// Prints the result. Fails if the receiver has not accepted the request.
fn print_test(json: bool, test: WebhookTest) -> anyhow::Result<()> {
    let (failure, detail) = (non_empty(test.failure), non_empty(test.detail));
    let duration = |view: View, name: &'static str, phase: Option<prost_types::Duration>| {
        let microseconds = phase.map(microseconds);
        let milliseconds = microseconds.map(|us| format!("{}.{:03} ms", us / 1000, us % 1000));
        view.json(name, microseconds)
            .text(name, milliseconds.unwrap_or_default())
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
