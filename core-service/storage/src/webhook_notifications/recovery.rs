//! Recovery: resends failed notifications, and enqueues the events that a webhook missed while it
//! was disabled.

use std::{collections::BTreeMap, ops::RangeInclusive};

use domain::{
    event::Object,
    id::{DeliveryId, EventId, NotificationId},
    notification::{MAX_ATTEMPTS, State},
    webhook::{Webhook, WebhookKey},
};

use super::page_queries;
use crate::prelude::*;
use crate::{
    entity::{
        Instant,
        notification::{ActiveModel, Column, Entity},
    },
    events,
    notifications::{LEASED, PENDING, of_webhook, queue},
    pages::{Cursor, Start},
};

/// Makes notifications of a webhook pending and due now, and restarts their retry schedules. Skips
/// leased ones, and those with [`MAX_ATTEMPTS`]. Returns how many changed.
pub async fn resend(
    transaction: &impl ConnectionTrait,
    webhook: WebhookKey,
    ids: impl IntoIterator<Item = NotificationId>,
    now: Timestamp,
) -> Result<u64, Error> {
    // Locks the webhook first: the lock order of claims.
    let due = BTreeMap::from([(webhook, now)]);
    queue::move_forward(transaction, &due).await?;
    let changed = Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::AttemptsAtResend, Expr::col(Column::Attempts))
        .col_expr(Column::DueAt, Expr::value(Instant::from(now)))
        .col_expr(Column::FinishedAt, Expr::value(None::<i64>))
        .filter(of_webhook(webhook))
        .filter(Column::Id.is_in(padded(ids.into_iter().map(|id| id.0))))
        .filter(Column::State.ne(LEASED))
        .filter(Column::Attempts.lt(MAX_ATTEMPTS))
        .exec(transaction)
        .await?;
    Ok(changed.rows_affected)
}

/// The cursors of a webhook's failed, exhausted and cancelled notifications after a cursor, oldest
/// first. Skips leased ones.
pub async fn failed_after(
    connection: &impl ConnectionTrait,
    webhook: WebhookKey,
    after: Cursor,
    limit: u64,
) -> Result<Vec<Cursor>, Error> {
    let states = [State::Failed, State::Exhausted, State::Cancelled];
    let mut cursors = BTreeMap::new();
    for query in page_queries(webhook, &states, Start::NewerThan(after)) {
        let query = query
            .select_only()
            .columns([Column::CreatedAt, Column::Id])
            .filter(Column::State.ne(LEASED))
            .limit(limit);
        let rows: Vec<(Instant, Uuid)> = query.into_tuple().all(connection).await?;
        for (created_at, id) in rows {
            let created_at = Timestamp::try_from(created_at)?;
            cursors.insert((created_at, id), Cursor { created_at, id });
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(cursors.into_values().take(limit).collect())
}

/// An event that a webhook missed because it was disabled.
#[derive(Clone, Copy, Debug)]
pub struct MissedEvent {
    pub event_id: EventId,
    pub delivery_id: DeliveryId,
    pub occurred_at: Timestamp,
}

/// The missed events in a page of the log.
#[derive(Clone, Debug, Default)]
pub struct MissedPage {
    pub missed: Vec<MissedEvent>,
    /// The number after which the next page begins; `None` at the end of the log.
    pub next_after: Option<i64>,
}

/// The events that a webhook missed in a period, from one page of its store's
/// log after a number: those that it subscribes to and has no notification of. The page at the end
/// of the log has the committed events without a number.
pub async fn missed_events(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    period: &RangeInclusive<Timestamp>,
    after: i64,
    limit: u64,
) -> Result<MissedPage, Error> {
    // Read before the page, so that no event is missed: one that is numbered in the meantime is on
    // the page.
    let unnumbered = unnumbered(connection, webhook, period, limit).await?;
    let page = events::list(connection, webhook.store_id, after, limit).await?;
    let Some(last) = page.last().map(|event| event.number) else {
        let may_be_more = u64::try_from(unnumbered.len()).is_ok_and(|count| count == limit);
        return Ok(MissedPage {
            missed: unnumbered,
            next_after: may_be_more.then_some(after),
        });
    };
    let mut missed: Vec<_> = page
        .into_iter()
        .filter(|event| event.name == webhook.event)
        .filter(|event| period.contains(&event.created_at))
        .filter_map(|event| missed_event(event.id, event.object, event.created_at))
        .collect();
    if !missed.is_empty() {
        let notified: Vec<Uuid> = notified_events(webhook, period)
            .filter(Column::EventId.is_in(padded(missed.iter().map(|missed| missed.event_id.0))))
            .into_tuple()
            .all(connection)
            .await?;
        missed.retain(|missed| !notified.contains(&missed.event_id.0));
    }
    Ok(MissedPage {
        missed,
        next_after: Some(last),
    })
}

/// The missed events of a period that have no number yet.
async fn unnumbered(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    period: &RangeInclusive<Timestamp>,
    limit: u64,
) -> Result<Vec<MissedEvent>, Error> {
    let notified = notified_events(webhook, period).into_query();
    let found = events::unnumbered(connection, webhook, period, notified, limit).await?;
    let missed = |(id, object, created_at)| missed_event(id, object, created_at);
    Ok(found.into_iter().filter_map(missed).collect())
}

fn missed_event(event_id: EventId, object: Object, occurred_at: Timestamp) -> Option<MissedEvent> {
    match object {
        Object::Delivery(delivery_id) => Some(MissedEvent {
            event_id,
            delivery_id,
            occurred_at,
        }),
        Object::Webhook(_) => None,
    }
}

/// The ids of the events of a period that a webhook has notifications of.
fn notified_events(webhook: &Webhook, period: &RangeInclusive<Timestamp>) -> Select<Entity> {
    Entity::find()
        .select_only()
        .column(Column::EventId)
        .filter(of_webhook(webhook.key()))
        // A notification is inserted with its event, at the same instant, which the index contains.
        .filter(Column::CreatedAt.gte(Instant::from(*period.start())))
        .filter(Column::CreatedAt.lte(Instant::from(*period.end())))
}

/// Inserts pending notifications of missed events.
pub async fn enqueue_missed(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
    missed: &[MissedEvent],
    now: Timestamp,
) -> Result<(), Error> {
    let due = BTreeMap::from([(webhook.key(), now)]);
    queue::move_forward(transaction, &due).await?;
    let rows = missed.iter().map(|missed| ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(NotificationId::new().0),
        event_id: Set(missed.event_id.0),
        webhook_id: Set(webhook.id.0),
        event: Set(webhook.event.clone()),
        delivery_id: Set(missed.delivery_id.0),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        due_at: Set(now.into()),
        created_at: Set(missed.occurred_at.into()),
        ..Default::default()
    });
    Entity::insert_many(rows)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}
