//! `delivery webhooks`: looking at what shops are told, and mending it.

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
    shown::{Notification, Recovery, Webhook},
    test::Test,
};
use crate::operator::{access, access::Access, id, refusal::refused, reply};

mod shown;
mod test;

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
    /// List what a webhook was told, newest first, and how its receiver answered
    Attempts {
        #[arg(value_parser = id::webhook)]
        id: String,
        /// Only those in a state; repeatable
        #[arg(long = "state", value_name = "STATE", value_parser = ["pending", "failed", "delivered", "given_up", "dropped"])]
        states: Vec<String>,
        /// How many at most
        #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
    },
    /// Send a notification again
    Resend {
        /// The notification: its id is the header `webhook-id`
        #[arg(value_parser = id::notification)]
        id: String,
    },
    /// Send again whatever failed since a time
    Recover {
        #[arg(value_parser = id::webhook)]
        id: String,
        /// Such as 2020-04-02T12:00:00+02:00
        #[arg(long, value_name = "TIME")]
        since: Timestamp,
    },
    /// Give a webhook a new secret and show it, this once
    RotateSecret {
        #[arg(value_parser = id::webhook)]
        id: String,
        /// How many seconds the old one is good beside it; a day unless told, 0 if it is known to
        /// others
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<i64>,
    },
    /// End the time in which a webhook's old secret is good beside its new one
    ConfirmSecret {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Send a webhook a signed sample now, and tell how that went
    Test {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Tell a webhook of what happens from now on
    Enable {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
    /// Tell a webhook nothing until it is enabled again; what is owed to it is dropped
    Disable {
        #[arg(value_parser = id::webhook)]
        id: String,
    },
}

impl Webhooks {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.open("admin").await?;
        let mut webhooks = WebhooksClient::new(core.channel.clone());
        let json = self.access.json;

        let webhook = match self.command {
            Command::List { store } => {
                let request = core.request(ListWebhooksRequest { store });
                let listed = webhooks.list_webhooks(request).await;
                let listed = listed.map_err(|status| refused(&status))?.into_inner();
                let shown: Vec<_> = listed.webhooks.into_iter().map(Webhook::from).collect();
                return reply::many(json, &shown);
            }
            Command::Attempts { id, states, limit } => {
                let request = ListWebhookNotificationsRequest {
                    webhook: id,
                    states,
                    page_size: Some(limit),
                    with_attempts: true,
                    ..ListWebhookNotificationsRequest::default()
                };
                return attempts(json, &core, webhooks, request).await;
            }
            Command::Resend { id } => {
                let request = core.request(ResendWebhookNotificationRequest {
                    name: id,
                    idempotency: None,
                });
                let sent = webhooks.resend_webhook_notification(request).await;
                let sent = sent.map_err(|status| refused(&status))?.into_inner();
                return reply::one(json, &Notification::from(sent));
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
                let recovery = recovery.map_err(|status| refused(&status))?.into_inner();
                return reply::one(json, &Recovery::from(recovery));
            }
            Command::Test { id } => {
                let request = core.request(TestWebhookRequest { name: id });
                let tested = webhooks.test_webhook(request).await;
                let tested = tested.map_err(|status| refused(&status))?.into_inner();
                return reply::one(json, &Test::from(tested));
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
        let webhook = webhook.map_err(|status| refused(&status))?.into_inner();
        reply::one(json, &Webhook::from(webhook))
    }
}

async fn attempts(
    json: bool,
    core: &access::Core,
    mut webhooks: WebhooksClient<Channel>,
    request: ListWebhookNotificationsRequest,
) -> anyhow::Result<()> {
    let listed = webhooks
        .list_webhook_notifications(core.request(request))
        .await
        .map_err(|status| refused(&status))?
        .into_inner();
    let shown: Vec<_> = listed
        .notifications
        .into_iter()
        .map(Notification::from)
        .collect();
    reply::many(json, &shown)
}
