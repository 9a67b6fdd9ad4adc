//! The notifications of a webhook, as its owner looks at them: pages, attempts, and sending again.

mod recovery;
mod states;

use std::collections::HashMap;

use domain::{
    id::{DeliveryId, NotificationId, StoreId, WebhookId},
    notification_state::State,
};
use jiff::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, Select};

#[cfg(test)]
pub use self::recovery::Page;
pub use self::recovery::{failed_behind, missed, owe_missed, send_again};
use super::{
    ConnectionTrait, Error,
    entity::{
        attempt, instant,
        notification::{Column, Entity, Model},
    },
    pages::{self, Start},
};

/// A notification as its owner sees it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub id: NotificationId,
    pub store_id: StoreId,
    pub webhook_id: WebhookId,
    pub event: String,
    pub delivery_id: DeliveryId,
    pub state: State,
    /// How many attempts have ended.
    pub attempts: u32,
    /// When the next attempt is due; none if there is to be none.
    pub due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// How an attempt went.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// The failure's name; none if it was delivered.
    pub failure: Option<String>,
    /// The HTTP status, if there was an answer.
    pub status: Option<u32>,
    /// Microseconds.
    pub duration: i64,
    /// The first bytes of the answer, as text.
    pub answer: String,
    pub recorded_at: Timestamp,
}

/// A page of a webhook's notifications, newest first, and whether there are more in the
/// direction it was read.
pub async fn read(
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
        query = query.filter(states::in_any(states));
    }
    pages::from(query, (Column::CreatedAt, Column::Id), start)
}

/// A notification of any store: whose it is, is asked next.
pub async fn find_of_any_store(
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
pub async fn find(
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
pub async fn attempts(
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

impl TryFrom<Model> for Shown {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let state = states::of(&row)?;
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
