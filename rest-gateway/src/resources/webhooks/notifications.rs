//! `/api/webhooks/{id}/notifications`, `/api/webhooks/{id}/recover` and `/api/notifications`: a
//! webhook's notifications, recovering failed ones and resending one.

use proto::{
    GetWebhookNotificationRequest, ListWebhookNotificationsRequest, RecoverWebhookRequest,
    ResendWebhookNotificationRequest, WebhookAttempt, WebhookNotification,
    iri::{self, Collection},
    webhook_notification::State,
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{
    body_reader::Object,
    core_pool::rpc,
    error::Error,
    representation::{
        collection::{self, Pagination},
        json_ld::{self, Node, StoreTimeZone},
    },
    request::{self, HandlerResult, Request},
};

const CONTEXT: &str = "/api/contexts/Notification";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    /// Its `id` is also the header `webhook-id`.
    #[serde(flatten)]
    node: Node,
    webhook: String,
    event: String,
    object: String,
    state: &'static str,
    attempt_count: u32,
    next_attempt_at: Option<String>,
    created_at: String,
    finished_at: Option<String>,
    /// None in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<Attempt>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    #[serde(rename = "attemptNumber")]
    number: u32,
    ended_at: String,
    milliseconds: i64,
    /// Null if delivered.
    failure: Option<String>,
    status_code: Option<u32>,
    #[serde(rename = "answer")]
    response_body: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename = "WebhookRecovery")]
struct Recovery {
    since: String,
    recovered: u64,
}

/// `GET /api/webhooks/{id}/notifications`: newest first, paginated.
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    request.violations.add_alias("states".to_owned(), "state");
    let states = request.distinct_query("state");
    let page_size = collection::read_page_size(&mut request);
    let cursor = collection::read_single(&mut request, "page_token", "cursor").unwrap_or_default();

    let webhook = Collection::Webhooks.name(&request.parameter);
    let message = ListWebhookNotificationsRequest {
        webhook: webhook.clone(),
        states: states.clone(),
        page_size,
        page_token: cursor.clone(),
        with_attempts: false,
        violations: request.violations.to_proto(),
    };
    let page = request
        .call(message, rpc!(WebhooksClient.list_webhook_notifications))
        .await?;

    // Core has accepted the states, so they need no escaping.
    let mut query: Vec<_> = states
        .iter()
        .map(|state| format!("state={state}"))
        .collect();
    query.extend(page_size.map(|size| format!("itemsPerPage={size}")));
    let pagination = Pagination {
        operation: request.operation,
        parameter: "cursor",
        query: query.join("&"),
        cursor,
        previous: page.previous_page_token,
        next: page.next_page_token,
    };
    let notifications = page.notifications.into_iter().map(|notification| {
        Ok(Notification {
            attempts: None,
            ..Notification::try_from(notification)?
        })
    });
    let page = collection::Collection::page(
        format!("{}/notifications", iri::of(&webhook)),
        notifications.collect::<Result<_, Error>>()?,
        &pagination,
    );
    json_ld::ok(CONTEXT, &page)
}

/// `GET /api/notifications/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Notifications.name(&request.parameter);
    let message = GetWebhookNotificationRequest { name };
    let notification = request
        .call(message, rpc!(WebhooksClient.get_webhook_notification))
        .await?;

    show(notification)
}

/// `POST /api/notifications/{id}/resend`
pub(crate) async fn resend(request: Request) -> HandlerResult {
    let message = ResendWebhookNotificationRequest {
        name: Collection::Notifications.name(&request.parameter),
        idempotency: request.idempotency.clone(),
    };
    let response = request
        .write(message, rpc!(WebhooksClient.resend_webhook_notification))
        .await?;

    request::respond(response, show)
}

fn show(notification: WebhookNotification) -> HandlerResult {
    json_ld::ok(CONTEXT, &Notification::try_from(notification)?)
}

/// `POST /api/webhooks/{id}/recover`
pub(crate) async fn recover(mut request: Request) -> HandlerResult {
    let since = Object::root(&request.json).instant("since", &mut request.violations);
    let message = RecoverWebhookRequest {
        name: Collection::Webhooks.name(&request.parameter),
        since,
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let response = request
        .send(message, true, rpc!(WebhooksClient.recover_webhook))
        .await?;

    request::respond(response, |recovery| {
        let recovery = Recovery {
            since: StoreTimeZone::named(&recovery.time_zone).write(recovery.since.as_ref())?,
            recovered: recovery.recovered,
        };
        json_ld::ok("/api/contexts/WebhookRecovery", &recovery)
    })
}

impl TryFrom<WebhookNotification> for Notification {
    type Error = Error;

    fn try_from(notification: WebhookNotification) -> Result<Self, Error> {
        let zone = StoreTimeZone::named(&notification.time_zone);
        let state = match notification.state() {
            State::Pending => "pending",
            State::Failed => "failed",
            State::Delivered => "delivered",
            State::Exhausted => "exhausted",
            State::Cancelled => "cancelled",
            State::Unspecified => return Err(Error::incomplete("a notification's state")),
        };
        let attempts = notification.attempts.into_iter();
        Ok(Self {
            node: Node::new(
                "Notification",
                Collection::Notifications,
                &notification.name,
            ),
            webhook: iri::of(&notification.webhook),
            event: notification.event,
            object: iri::of(&notification.object),
            state,
            attempt_count: notification.attempt_count,
            next_attempt_at: zone.write_optional(notification.next_attempt_time.as_ref())?,
            created_at: zone.write(notification.create_time.as_ref())?,
            finished_at: zone.write_optional(notification.finish_time.as_ref())?,
            attempts: Some(
                attempts
                    .map(|attempt| Attempt::new(attempt, &zone))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

impl Attempt {
    fn new(attempt: WebhookAttempt, zone: &StoreTimeZone) -> Result<Self, Error> {
        Ok(Self {
            number: attempt.number,
            ended_at: zone.write(attempt.end_time.as_ref())?,
            milliseconds: attempt.duration_microseconds / 1000,
            failure: Some(attempt.failure).filter(|failure| !failure.is_empty()),
            status_code: attempt.status,
            response_body: attempt.response_body,
        })
    }
}
