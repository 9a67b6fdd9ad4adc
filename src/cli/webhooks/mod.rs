//! `delivery webhooks`: inspects, tests and repairs webhooks and their notifications.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use process::{duration, number};
use proto::{
    ConfirmWebhookSecretRequest, DisableWebhookRequest, EnableWebhookRequest,
    ListWebhookNotificationsRequest, ListWebhooksRequest, RecoverWebhookRequest,
    ResendWebhookNotificationRequest, RotateWebhookSecretRequest, TestWebhookRequest,
    webhooks_client::WebhooksClient,
};
use tonic::transport::Channel;

use self::{
    test_send::TestResult,
    views::{Notification, Recovery, Webhook},
};
use crate::cli::{
    access::{self, Access},
    errors::{call_error, reply},
    id, output,
};

mod test_send;
mod views;

#[derive(Args, Debug)]
pub(crate) struct Webhooks {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the webhooks of a store, oldest first
    List {
        #[arg(long, value_name = "ID", value_parser = id::store)]
        store: String,
    },
    /// List a webhook's notifications with their attempts, newest first
    Attempts {
        #[arg(value_parser = id::webhook)]
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
        #[arg(value_parser = id::notification)]
        id: String,
    },
    /// Resend failed notifications, and send missed events, since a time
    Recover {
        #[arg(value_parser = id::webhook)]
        id: String,
        /// Start, such as 2020-04-02T12:00:00+02:00
        #[arg(long, value_name = "TIME")]
        since: Timestamp,
    },
    /// Rotate a webhook's secret and print the new one, which is shown only once
    RotateSecret {
        #[arg(value_parser = id::webhook)]
        id: String,
        /// How long the old secret stays valid: by default a day; `0` if it is compromised
        #[arg(long, value_name = "DURATION", value_parser = duration::parse_or_zero)]
        overlap: Option<Duration>,
    },
    /// Confirm a webhook's new secret and invalidate the old ones
    ConfirmSecret {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Send a webhook a signed test request and print the result
    ///
    /// The exit status is 1 if the receiver does not accept the request.
    Test {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Enable a webhook
    Enable {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Disable a webhook and cancel its pending notifications
    Disable {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
}

impl Webhooks {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let webhooks = || WebhooksClient::new(core.channel.clone());
        let json = self.access.json;

        let webhook = match self.command {
            Command::List { store } => {
                let request = core.request(ListWebhooksRequest { store });
                let listed = reply(webhooks().list_webhooks(request).await)?;
                let webhooks: Vec<_> = listed.webhooks.into_iter().map(Webhook::from).collect();
                return output::many(json, &webhooks);
            }
            Command::Attempts { id, states, limit } => {
                let request = ListWebhookNotificationsRequest {
                    webhook: id,
                    states,
                    page_size: Some(limit),
                    with_attempts: true,
                    ..ListWebhookNotificationsRequest::default()
                };
                return list_notifications(json, &core, webhooks(), request).await;
            }
            Command::Resend { id: name } => {
                let idempotency = None;
                let message = ResendWebhookNotificationRequest { name, idempotency };
                let sent = core
                    .write(message, call_error, async |request| {
                        webhooks().resend_webhook_notification(request).await
                    })
                    .await?;
                return output::one(json, &Notification::from(sent));
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
                let recovery = core
                    .write(message, call_error, async |request| {
                        webhooks().recover_webhook(request).await
                    })
                    .await?;
                return output::one(json, &Recovery::from(recovery));
            }
            Command::Test { id } => {
                let request = core.request(TestWebhookRequest { name: id });
                let tested = reply(webhooks().test_webhook(request).await)?;
                return TestResult::from(tested).print(json);
            }
            Command::RotateSecret { id, overlap } => {
                let message = RotateWebhookSecretRequest {
                    name: id,
                    overlap_seconds: overlap
                        .map(|overlap| i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX)),
                    violations: Vec::new(),
                    idempotency: None,
                };
                core.write(message, call_error, async |request| {
                    webhooks().rotate_webhook_secret(request).await
                })
                .await
            }
            Command::ConfirmSecret { id: name } => {
                let idempotency = None;
                let message = ConfirmWebhookSecretRequest { name, idempotency };
                core.write(message, call_error, async |request| {
                    webhooks().confirm_webhook_secret(request).await
                })
                .await
            }
            Command::Enable { id: name } => {
                let idempotency = None;
                let message = EnableWebhookRequest { name, idempotency };
                core.write(message, call_error, async |request| {
                    webhooks().enable_webhook(request).await
                })
                .await
            }
            Command::Disable { id: name } => {
                let idempotency = None;
                let message = DisableWebhookRequest { name, idempotency };
                core.write(message, call_error, async |request| {
                    webhooks().disable_webhook(request).await
                })
                .await
            }
        };
        output::one(json, &Webhook::from(webhook?))
    }
}

async fn list_notifications(
    json: bool,
    core: &access::Core,
    mut webhooks: WebhooksClient<Channel>,
    request: ListWebhookNotificationsRequest,
) -> anyhow::Result<()> {
    let request = core.request(request);
    let listed = reply(webhooks.list_webhook_notifications(request).await)?;
    let notifications: Vec<_> = listed
        .notifications
        .into_iter()
        .map(Notification::from)
        .collect();
    output::many(json, &notifications)
}
