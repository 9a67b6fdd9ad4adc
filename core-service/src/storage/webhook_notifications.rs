//! The notifications of a webhook, as its owner looks at them: pages, attempts, and sending again.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Expr, ExprTrait as _},
};
use uuid::Uuid;

use super::{
    ConnectionTrait, Error,
    entity::{
        attempt,
        instant::{self, Instant},
        notification::{ActiveModel, Column, Entity, Model},
    },
    events, notifications,
    pages::{self, Place, Start},
};
use crate::domain::{
    event::Object,
    id::{DeliveryId, EventId, NotificationId, StoreId, WebhookId},
    notification_state::State,
    webhook::Webhook,
};

const PENDING: &str = "pending";
const LEASED: &str = "leased";
const DELIVERED: &str = "delivered";
const GIVEN_UP: &str = "given_up";
const DROPPED: &str = "dropped";

/// A notification as its owner sees it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) id: NotificationId,
    pub(crate) store_id: StoreId,
    pub(crate) webhook_id: WebhookId,
    pub(crate) event: String,
    pub(crate) delivery_id: DeliveryId,
    pub(crate) state: State,
    /// How many attempts have ended.
    pub(crate) attempts: u32,
    /// When the next attempt is due; none if there is to be none.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
}

/// How an attempt went.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Counts from 1.
    pub(crate) number: u32,
    /// The failure's name; none if it was delivered.
    pub(crate) failure: Option<String>,
    /// The HTTP status, if there was an answer.
    pub(crate) status: Option<u32>,
    /// Microseconds.
    pub(crate) duration: i64,
    /// The first bytes of the answer, as text.
    pub(crate) answer: String,
    pub(crate) recorded_at: Timestamp,
}

/// A page of a webhook's notifications, newest first, and whether there are more in the
/// direction it was read.
pub(crate) async fn read(
    connection: &impl ConnectionTrait,
    owner: (StoreId, WebhookId),
    states: &[State],
    start: Start,
    size: u32,
) -> Result<(Vec<Shown>, bool), Error> {
    let query = page(owner, states, start);
    let (rows, more) = pages::read(connection, query, start, size).await?;
    let page = rows.into_iter().map(Shown::try_from);
    Ok((page.collect::<Result<_, _>>()?, more))
}

/// A webhook's notifications in some states, or in any if there are none, in the order they are
/// read.
pub(super) fn page(
    (store_id, webhook_id): (StoreId, WebhookId),
    states: &[State],
    start: Start,
) -> Select<Entity> {
    let mut query = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::WebhookId.eq(webhook_id.0));
    if !states.is_empty() {
        query = query.filter(in_any(states));
    }
    pages::from(query, (Column::CreatedAt, Column::Id), start)
}

/// A notification of any store: whose it is, is asked next.
pub(crate) async fn find_of_any_store(
    connection: &impl ConnectionTrait,
    id: NotificationId,
) -> Result<Option<Shown>, Error> {
    let row = Entity::find()
        .filter(Column::Id.eq(id.0))
        .one(connection)
        .await?;
    row.map(Shown::try_from).transpose()
}

/// A store's notification.
pub(crate) async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: NotificationId,
) -> Result<Option<Shown>, Error> {
    let row = Entity::find_by_id((store_id.0, id.0))
        .one(connection)
        .await?;
    row.map(Shown::try_from).transpose()
}

/// The attempts made for some notifications of a store, oldest first. One that could not be
/// written down is missing.
pub(crate) async fn attempts(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    ids: impl IntoIterator<Item = NotificationId>,
) -> Result<HashMap<NotificationId, Vec<Attempt>>, Error> {
    let rows = attempt::Entity::find()
        .filter(attempt::Column::StoreId.eq(store_id.0))
        .filter(attempt::Column::NotificationId.is_in(ids.into_iter().map(|id| id.0)))
        .order_by_asc(attempt::Column::Number)
        .all(connection)
        .await?;
    let mut attempts: HashMap<_, Vec<_>> = HashMap::new();
    for row in rows {
        let wrong = |error| Error::inconsistent("attempts", error);
        let of = attempts.entry(NotificationId(row.notification_id));
        of.or_default().push(Attempt {
            number: u32::try_from(row.number).map_err(wrong)?,
            failure: row.failure,
            status: row.status.map(u32::try_from).transpose().map_err(wrong)?,
            duration: row.duration,
            answer: row.answer,
            recorded_at: row.recorded_at.try_into()?,
        });
    }
    Ok(attempts)
}

/// Makes notifications of a webhook owed now, with the whole schedule before them; one that is
/// just being sent stays as it is. How many that were.
pub(crate) async fn send_again(
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
pub(crate) async fn failed_behind(
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
pub(crate) struct Missed {
    pub(crate) event_id: EventId,
    pub(crate) delivery_id: DeliveryId,
    pub(crate) happened_at: Timestamp,
}

/// What a look at the log found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) missed: Vec<Missed>,
    /// The number to go on after; none at the end of the log.
    pub(crate) last: Option<i64>,
}

/// Of a page of the log of a webhook's store, after a number, the events for it that happened in
/// a period, both ends included, and of which it has no notification.
pub(crate) async fn missed(
    connection: &impl ConnectionTrait,
    webhook: &Webhook,
    (from, until): (Timestamp, Timestamp),
    after: i64,
    most: u64,
) -> Result<Page, Error> {
    let page = events::list(connection, webhook.store_id, after, most).await?;
    let last = page.last().map(|event| event.number);
    let mut missed: Vec<_> = page
        .into_iter()
        .filter(|event| event.name == webhook.event.as_str())
        .filter(|event| (from..=until).contains(&event.created_at))
        .filter_map(|event| match event.object {
            Object::Delivery(delivery_id) => Some(Missed {
                event_id: event.id,
                delivery_id,
                happened_at: event.created_at,
            }),
            Object::Webhook(_) => None,
        })
        .collect();
    if missed.is_empty() {
        return Ok(Page { missed, last });
    }
    let told: Vec<Uuid> = Entity::find()
        .select_only()
        .column(Column::EventId)
        .filter(Column::StoreId.eq(webhook.store_id.0))
        .filter(Column::WebhookId.eq(webhook.id.0))
        // A notification is written with its event; the index goes by when.
        .filter(Column::CreatedAt.gte(Instant::from(from)))
        .filter(Column::CreatedAt.lte(Instant::from(until)))
        .filter(Column::EventId.is_in(missed.iter().map(|missed| missed.event_id.0)))
        .into_tuple()
        .all(connection)
        .await?;
    missed.retain(|missed| !told.contains(&missed.event_id.0));
    Ok(Page { missed, last })
}

/// Owes a webhook what it missed.
pub(crate) async fn owe_missed(
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

/// Those of whom nothing may be delivered, or pending, are found by an index of their own, which
/// is known by its words.
fn in_any(states: &[State]) -> Condition {
    let any = states
        .iter()
        .fold(Condition::any(), |any, state| any.add(is(*state)));
    let has_failed = |state| matches!(state, State::Failed | State::GivenUp | State::Dropped);
    if !states.iter().copied().all(has_failed) {
        return Condition::all().add(any);
    }
    Condition::all()
        .add(Expr::cust("state <> 'delivered'"))
        .add(Expr::cust("(attempts > 0 OR state = 'dropped')"))
        .add(any)
}

fn is(state: State) -> Condition {
    let owed = || Condition::all().add(Column::State.is_in([PENDING, LEASED]));
    let attempts = || Expr::col(Column::Attempts);
    let restarted_after = || Expr::col(Column::RestartedAfter);
    match state {
        State::Pending => owed().add(attempts().lte(restarted_after())),
        State::Failed => owed().add(attempts().gt(restarted_after())),
        State::Delivered => Condition::all().add(Column::State.eq(DELIVERED)),
        State::GivenUp => Condition::all().add(Column::State.eq(GIVEN_UP)),
        State::Dropped => Condition::all().add(Column::State.eq(DROPPED)),
    }
}

impl TryFrom<Model> for Shown {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let state = match row.state.as_str() {
            PENDING | LEASED if row.attempts > row.restarted_after => State::Failed,
            PENDING | LEASED => State::Pending,
            DELIVERED => State::Delivered,
            GIVEN_UP => State::GivenUp,
            DROPPED => State::Dropped,
            other => {
                let what = format!("state {other:?}");
                return Err(Error::inconsistent("notifications", what));
            }
        };
        let is_owed = matches!(state, State::Pending | State::Failed);
        Ok(Self {
            id: NotificationId(row.id),
            store_id: StoreId(row.store_id),
            webhook_id: WebhookId(row.webhook_id),
            event: row.event,
            delivery_id: DeliveryId(row.delivery_id),
            state,
            attempts: u32::try_from(row.attempts)
                .map_err(|error| Error::inconsistent("notifications", error))?,
            due_at: is_owed.then(|| row.due_at.try_into()).transpose()?,
            created_at: row.created_at.try_into()?,
            finished_at: instant::optional(row.finished_at)?,
        })
    }
}
