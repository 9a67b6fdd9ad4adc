//! `delivery webhooks`: inspects, tests and repairs webhooks and their notifications.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use process::{duration, number};
use proto::{
    ConfirmWebhookSecretRequest, DisableWebhookRequest, EnableWebhookRequest,
    ListWebhookNotificationsRequest, ListWebhooksRequest, RecoverWebhookRequest,
    ResendWebhookNotificationRequest, RotateWebhookSecretRequest, TestWebhookRequest,
    iri::Collection,
};

use crate::cli::{access::CoreCommand, id, output};

mod test_send;
mod views;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the webhooks of a store, oldest first
    List {
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        store: String,
    },
    /// List a webhook's notifications with their attempts, newest first
    Attempts {
        #[arg(value_parser = id::parser(Collection::Webhooks))]
        id: String,
        /// Only notifications in this state; repeatable
        #[arg(long = "state", value_name = "STATE", value_parser = ["pending", "failed", "delivered", "exhausted", "cancelled"])]
        states: Vec<String>,
        /// Maximum number of notifications
        #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = number::within((1_u32, 100), 30))]
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

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        let webhook = match self.command {
            Command::List { store } => {
                let request = ListWebhooksRequest { store };
                let listed = core.call(request).await?;
                return output::many(json, listed.webhooks.into_iter().map(views::webhook));
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
                return output::many(json, notifications.map(views::notification));
            }
            Command::Resend { id: name } => {
                let idempotency = None;
                let message = ResendWebhookNotificationRequest { name, idempotency };
                let sent = core.write(message).await?;
                return output::one(json, views::notification(&sent));
            }
            Command::Recover { id, since } => {
                let message = RecoverWebhookRequest {
                    name: id,
                    since: Some(prost_types::Timestamp {
                        seconds: since.as_second(),
                        nanos: since.subsec_nanosecond(),
                    }),
                    violations: Vec::new(),
                    idempotency: None,
                };
                let recovery = core.write(message).await?;
                return output::one(json, views::recovery(&recovery));
            }
            Command::Test(WebhookId { id: name }) => {
                let request = TestWebhookRequest { name };
                let tested = core.call(request).await?;
                return test_send::print(json, tested);
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
        output::one(json, views::webhook(webhook?))
    }
}
