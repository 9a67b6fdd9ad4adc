//! `delivery webhooks`: inspects, tests and repairs webhooks and their notifications.

use clap::{Args, Subcommand};
use jiff::Timestamp;
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
    errors::call_error,
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
        #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100))]
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
        /// Seconds for which the old secret stays valid, by default a day; 0 if it is compromised
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<i64>,
    },
    /// Confirm a webhook's new secret and invalidate the old ones
    ConfirmSecret {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Send a webhook a signed test request and print the result
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
        let mut webhooks = WebhooksClient::new(core.channel.clone());
        let json = self.access.json;

        let webhook = match self.command {
            Command::List { store } => {
                let request = core.request(ListWebhooksRequest { store });
                let listed = webhooks.list_webhooks(request).await;
                let listed = listed.map_err(|status| call_error(&status))?.into_inner();
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
                return list_notifications(json, &core, webhooks, request).await;
            }
            Command::Resend { id } => {
                let request = core.request(ResendWebhookNotificationRequest {
                    name: id,
                    idempotency: None,
                });
                let sent = webhooks.resend_webhook_notification(request).await;
                let sent = sent.map_err(|status| call_error(&status))?.into_inner();
                return output::one(json, &Notification::from(sent));
            }
            Command::Recover { id, since } => {
                let request = core.request(RecoverWebhookRequest {
                    name: id,
                    since: Some(prost_types::Timestamp {
                        seconds: since.as_second(),
                        nanos: since.subsec_nanosecond(),
                    }),
                    violations: Vec::new(),
                    idempotency: None,
                });
                let recovery = webhooks.recover_webhook(request).await;
                let recovery = recovery.map_err(|status| call_error(&status))?.into_inner();
                return output::one(json, &Recovery::from(recovery));
            }
            Command::Test { id } => {
                let request = core.request(TestWebhookRequest { name: id });
                let tested = webhooks.test_webhook(request).await;
                let tested = tested.map_err(|status| call_error(&status))?.into_inner();
                return output::one(json, &TestResult::from(tested));
            }
            Command::RotateSecret { id, overlap } => {
                let request = core.request(RotateWebhookSecretRequest {
                    name: id,
                    overlap_seconds: overlap,
                    violations: Vec::new(),
                    idempotency: None,
                });
                webhooks.rotate_webhook_secret(request).await
            }
            Command::ConfirmSecret { id } => {
                let request = core.request(ConfirmWebhookSecretRequest {
                    name: id,
                    idempotency: None,
                });
                webhooks.confirm_webhook_secret(request).await
            }
            Command::Enable { id } => {
                let request = core.request(EnableWebhookRequest {
                    name: id,
                    idempotency: None,
                });
                webhooks.enable_webhook(request).await
            }
            Command::Disable { id } => {
                let request = core.request(DisableWebhookRequest {
                    name: id,
                    idempotency: None,
                });
                webhooks.disable_webhook(request).await
            }
        };
        let webhook = webhook.map_err(|status| call_error(&status))?.into_inner();
        output::one(json, &Webhook::from(webhook))
    }
}

async fn list_notifications(
    json: bool,
    core: &access::Core,
    mut webhooks: WebhooksClient<Channel>,
    request: ListWebhookNotificationsRequest,
) -> anyhow::Result<()> {
    let listed = webhooks
        .list_webhook_notifications(core.request(request))
        .await
        .map_err(|status| call_error(&status))?
        .into_inner();
    let notifications: Vec<_> = listed
        .notifications
        .into_iter()
        .map(Notification::from)
        .collect();
    output::many(json, &notifications)
}
