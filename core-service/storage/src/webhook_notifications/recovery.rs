//! Sending again: what failed, and what happened while a webhook was disabled.

use std::collections::BTreeMap;

use domain::{
    event::Object,
    id::{DeliveryId, EventId, NotificationId, StoreId, WebhookId},
    notification_state::State,
    webhook::Webhook,
};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait as _, Select,
    sea_query::{Expr, ExprTrait as _},
};
use uuid::Uuid;

use super::states::in_any;

use crate::{
    ConnectionTrait, Error,
    entity::{
        instant::Instant,
        notification::{ActiveModel, Column, Entity},
    },
    events,
    notifications::{self, LEASED, PENDING},
    pages::Place,
};

/// Makes notifications of a webhook owed now, with the whole schedule before them; one that is
/// just being sent stays as it is. How many that were.
pub async fn send_again(
    transaction: &impl ConnectionTrait,
    (store_id, webhook_id): (StoreId, WebhookId),
    ids: impl IntoIterator<Item = NotificationId>,
    now: Timestamp,
) -> Result<u64, Error> {
    // First the webhook, as claims do.
    notifications::wake(
        transaction,
        &BTreeMap::from([((store_id, webhook_id), now)]),
    )
    .await?;
    let changed = Entity::update_many()
        .col_expr(Column::State, Expr::value(PENDING))
        .col_expr(Column::RestartedAfter, Expr::col(Column::Attempts))
        .col_expr(Column::DueAt, Expr::value(Instant::from(now)))
        .col_expr(Column::FinishedAt, Expr::value(None::<i64>))
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::WebhookId.eq(webhook_id.0))
        .filter(Column::Id.is_in(ids.into_iter().map(|id| id.0)))
        .filter(Column::State.ne(LEASED))
        .exec(transaction)
        .await?;
    Ok(changed.rows_affected)
}

/// The oldest of a webhook's notifications behind a place that failed, were given up or dropped.
pub async fn failed_behind(
    connection: &impl ConnectionTrait,
    (store_id, webhook_id): (StoreId, WebhookId),
    place: Place,
    most: u64,
) -> Result<Vec<Place>, Error> {
    let created_at = Instant::from(place.created_at);
    let beyond = Column::CreatedAt.gt(created_at).or(Column::Id.gt(place.id));
    let places: Vec<(Instant, Uuid)> = Entity::find()
        .select_only()
        .columns([Column::CreatedAt, Column::Id])
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::WebhookId.eq(webhook_id.0))
        .filter(Column::CreatedAt.gte(created_at).and(beyond))
        .filter(in_any(&[State::Failed, State::GivenUp, State::Dropped]))
        .filter(Column::State.ne(LEASED))
        .order_by_asc(Column::CreatedAt)
        .order_by_asc(Column::Id)
        .limit(most)
        .into_tuple()
        .all(connection)
        .await?;
    let place = |(created_at, id): (Instant, _)| {
        Ok(Place {
            created_at: created_at.try_into()?,
            id,
        })
    };
    places.into_iter().map(place).collect()
}

/// An event that a webhook was not told of, because it was disabled then.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    pub event_id: EventId,
    pub delivery_id: DeliveryId,
    pub happened_at: Timestamp,
}

/// What a look at the log found.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub missed: Vec<Missed>,
    /// The number to go on after; none at the end of the log.
    pub last: Option<i64>,
}

/// Of a page of the log of a webhook's store, after a number, the events for it that happened in
/// a period, both ends included, and of which it has no notification. At the end of the log also
/// those that are committed and have no number yet.
pub async fn missed(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    period: (Timestamp, Timestamp),
    after: i64,
    most: u64,
) -> Result<Page, Error> {
    // Before the page: what gets its number meanwhile is on that, and then this is not its end.
    let unnumbered = unnumbered(connection, webhook, period, most).await?;
    let page = events::list(connection, webhook.store_id, after, most).await?;
    let Some(last) = page.last().map(|event| event.number) else {
        let may_be_more = u64::try_from(unnumbered.len()).is_ok_and(|count| count == most);
        return Ok(Page {
            missed: unnumbered,
            last: may_be_more.then_some(after),
        });
    };
    let (from, until) = period;
    let mut missed: Vec<_> = page
        .into_iter()
        .filter(|event| event.name == webhook.event.as_str())
        .filter(|event| (from..=until).contains(&event.created_at))
        .filter_map(|event| missed_of(event.id, event.object, event.created_at))
        .collect();
    if !missed.is_empty() {
        let told: Vec<Uuid> = told(webhook, period)
            .filter(Column::EventId.is_in(missed.iter().map(|missed| missed.event_id.0)))
            .into_tuple()
            .all(connection)
            .await?;
        missed.retain(|missed| !told.contains(&missed.event_id.0));
    }
    Ok(Page {
        missed,
        last: Some(last),
    })
}

/// The events for a webhook that have no number yet, happened in a period, and of which it has no
/// notification.
async fn unnumbered(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    period: (Timestamp, Timestamp),
    most: u64,
) -> Result<Vec<Missed>, Error> {
    let of = (webhook.store_id, webhook.event.as_str());
    let told = told(webhook, period).into_query();
    let found = events::unnumbered(connection, of, period, told, most).await?;
    let missed = |(id, object, created_at)| missed_of(id, object, created_at);
    Ok(found.into_iter().filter_map(missed).collect())
}

fn missed_of(event_id: EventId, object: Object, happened_at: Timestamp) -> Option<Missed> {
    match object {
        Object::Delivery(delivery_id) => Some(Missed {
            event_id,
            delivery_id,
            happened_at,
        }),
        Object::Webhook(_) => None,
    }
}

/// The events of a period that a webhook has notifications of.
fn told(webhook: &Webhook, (from, until): (Timestamp, Timestamp)) -> Select<Entity> {
    Entity::find()
        .select_only()
        .column(Column::EventId)
        .filter(Column::StoreId.eq(webhook.store_id.0))
        .filter(Column::WebhookId.eq(webhook.id.0))
        // A notification is written with its event; the index goes by when.
        .filter(Column::CreatedAt.gte(Instant::from(from)))
        .filter(Column::CreatedAt.lte(Instant::from(until)))
}

/// Owes a webhook what it missed.
pub async fn owe_missed(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
    missed: &[Missed],
    now: Timestamp,
) -> Result<(), Error> {
    let owner = (webhook.store_id, webhook.id);
    notifications::wake(transaction, &BTreeMap::from([(owner, now)])).await?;
    let rows = missed.iter().map(|missed| ActiveModel {
        store_id: Set(webhook.store_id.0),
        id: Set(NotificationId::new().0),
        event_id: Set(missed.event_id.0),
        webhook_id: Set(webhook.id.0),
        event: Set(webhook.event.as_str().to_owned()),
        delivery_id: Set(missed.delivery_id.0),
        state: Set(PENDING.to_owned()),
        attempts: Set(0),
        restarted_after: Set(0),
        due_at: Set(now.into()),
        lease_token: Set(None),
        leased_until: Set(None),
        created_at: Set(missed.happened_at.into()),
        finished_at: Set(None),
    });
    Entity::insert_many(rows)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}
