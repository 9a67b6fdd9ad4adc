//! `/api/webhooks/{id}/notifications`, `/api/notifications`

use std::sync::Arc;

use jiff::Timestamp;
use proto::{
    GetWebhookNotificationRequest, ListWebhookNotificationsRequest, RecoverWebhookRequest,
    ResendWebhookNotificationRequest, WebhookAttempt, WebhookNotification,
    iri::{self, Collection},
    webhook_notification::State,
    webhooks_client::WebhooksClient,
};
use serde::Serialize;

use crate::{
    collection::{self, Position},
    core::Repeat,
    error::Error,
    idempotency,
    json_ld::{self, Node, Zone},
    report::{Object, Report},
    request::Request,
    routes::{Answer, Gateway},
};

const CONTEXT: &str = "/api/contexts/Notification";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    /// Its `id` is that of the header `webhook-id`.
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
    /// None in a list.
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
    /// Null if it was delivered.
    failure: Option<String>,
    status_code: Option<u32>,
    answer: String,
}

#[derive(Debug, Serialize)]
struct Recovery {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    since: String,
    recovered: u64,
}

/// `GET /api/webhooks/{id}/notifications`: newest first, a page at a time.
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> Answer {
    let mut report = Report::default();
    report.choose("states".to_owned(), "state");
    let states = request.query("state");
    let page_size = collection::read_page_size(&request, &mut report);
    let cursor = collection::read_once(&request, ("page_token", "cursor"), &mut report);
    let cursor = cursor.unwrap_or_default();

    let webhook = Collection::Webhooks.name(&request.parameter);
    let message = ListWebhookNotificationsRequest {
        webhook: webhook.clone(),
        states: states.clone(),
        page_size,
        page_token: cursor.clone(),
        with_attempts: false,
        violations: report.violations(),
    };
    let page = gateway
        .core
        .read(&request, message, |core, message| async {
            WebhooksClient::new(core)
                .list_webhook_notifications(message)
                .await
        })
        .await
        .map_err(|error| report.explain(error))?;

    // Core has taken them, so they are known names and need no escaping.
    let mut query: Vec<_> = states
        .iter()
        .map(|state| format!("state={state}"))
        .collect();
    query.extend(page_size.map(|size| format!("itemsPerPage={size}")));
    let position = Position {
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
    json_ld::ok(&collection::Collection::page(
        CONTEXT,
        format!("{}/notifications", iri::of(&webhook)),
        notifications.collect::<Result<Vec<_>, Error>>()?,
        &position,
    ))
}

/// `GET /api/notifications/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = GetWebhookNotificationRequest {
        name: Collection::Notifications.name(&request.parameter),
    };
    let notification = gateway
        .core
        .read(&request, message, |core, message| async {
            WebhooksClient::new(core)
                .get_webhook_notification(message)
                .await
        })
        .await?;

    show(notification)
}

/// `POST /api/notifications/{id}/resend`
pub(crate) async fn resend(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let name = Collection::Notifications.name(&request.parameter);
    let idempotency = idempotency::without_content(request)?;

    let repeat = Repeat::with(idempotency.as_ref());
    let message = ResendWebhookNotificationRequest { name, idempotency };
    let response = gateway
        .core
        .call_in_full(call, repeat, message, |core, message| async {
            WebhooksClient::new(core)
                .resend_webhook_notification(message)
                .await
        })
        .await?;

    idempotency::answer(response, show)
}

fn show(notification: WebhookNotification) -> Answer {
    json_ld::ok(&Notification::try_from(notification)?.alone())
}

/// `POST /api/webhooks/{id}/recover`
pub(crate) async fn recover(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let name = Collection::Webhooks.name(&request.parameter);
    let mut report = Report::default();
    let key = idempotency::Key::of(&request, &mut report);
    let body = request.json()?;
    let value = report.parse(&body);
    let since = read_since(&Object::root(&value), &mut report);

    let message = RecoverWebhookRequest {
        name,
        since,
        violations: report.violations(),
        idempotency: key.map(|key| key.with_body(&body)),
    };
    let response = gateway
        .core
        .call_in_full(call, Repeat::Harmless, message, |core, message| async {
            WebhooksClient::new(core).recover_webhook(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    idempotency::answer(response, |recovery| {
        json_ld::ok(&Recovery {
            context: "/api/contexts/WebhookRecovery",
            ld_type: "WebhookRecovery",
            since: Zone::named(&recovery.time_zone).write(recovery.since.as_ref())?,
            recovered: recovery.recovered,
        })
    })
}

fn read_since(body: &Object<'_>, report: &mut Report) -> Option<prost_types::Timestamp> {
    const FIELD: &str = "since";
    /// In seconds from 1970.
    const YEAR_ZERO: i64 = -62_167_219_200;

    let text = body.text(FIELD, FIELD, report)?;
    // RFC 3339 has the years 0 to 9999; an answer must be able to repeat it.
    let since = text.parse::<Timestamp>().ok();
    let Some(since) = since.filter(|since| since.as_second() >= YEAR_ZERO) else {
        report.add(
            FIELD,
            "INVALID_INSTANT",
            "must be an instant with its offset, such as 2020-04-02T12:00:00+02:00",
        );
        return None;
    };
    Some(prost_types::Timestamp {
        seconds: since.as_second(),
        nanos: since.subsec_nanosecond(),
    })
}

impl Notification {
    fn alone(mut self) -> Self {
        self.node.stands_alone(CONTEXT);
        self
    }
}

impl TryFrom<WebhookNotification> for Notification {
    type Error = Error;

    fn try_from(notification: WebhookNotification) -> Result<Self, Error> {
        let zone = Zone::named(&notification.time_zone);
        let state = match notification.state() {
            State::Pending => "pending",
            State::Failed => "failed",
            State::Delivered => "delivered",
            State::GivenUp => "given_up",
            State::Dropped => "dropped",
            State::Unspecified => return Err(Error::incomplete("a notification's state")),
        };
        let attempts = notification.attempts.into_iter();
        Ok(Self {
            node: Node::of(
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
    fn new(attempt: WebhookAttempt, zone: &Zone) -> Result<Self, Error> {
        Ok(Self {
            number: attempt.number,
            ended_at: zone.write(attempt.end_time.as_ref())?,
            milliseconds: attempt.duration_microseconds / 1000,
            failure: Some(attempt.failure).filter(|failure| !failure.is_empty()),
            status_code: attempt.status,
            answer: attempt.answer,
        })
    }
}
