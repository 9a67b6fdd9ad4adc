//! A webhook's notifications as its owner sees them: pages, attempts, and recovery.

mod recovery;
mod states;

use std::collections::HashMap;

use domain::{
    id::{DeliveryId, NotificationId, StoreId, WebhookId},
    notification::State,
    webhook::WebhookKey,
};

#[cfg(test)]
pub use self::recovery::MissedPage;
pub use self::recovery::{enqueue_missed, failed_after, missed_events, resend};
use super::{
    entity::{
        Instant, attempt,
        notification::{Column, Entity, Model},
    },
    notifications::of_webhook,
    pages::{self, Start},
};
use crate::prelude::*;

/// A notification as the webhook's owner sees it.
#[derive(Clone, Debug)]
pub struct NotificationView {
    pub id: NotificationId,
    pub store_id: StoreId,
    pub webhook_id: WebhookId,
    pub event: String,
    pub delivery_id: DeliveryId,
    pub state: State,
    /// How many attempts have ended.
    pub attempts: u32,
    /// When the next attempt is due; `None` if there will be none.
    pub due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// An attempt as the webhook's owner sees it.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// Counts from 1.
    pub number: u32,
    /// The failure's name; `None` if delivered.
    pub failure: Option<String>,
    /// The HTTP status, if there was a response.
    pub status: Option<u32>,
    /// Microseconds.
    pub duration: i64,
    /// The first bytes of the response's body, as text.
    pub response_body: String,
    pub recorded_at: Timestamp,
}

/// A page of a webhook's notifications in some states (in all, if empty), newest first, and whether more follow
/// ([`pages::read`]).
pub async fn read(
    connection: &impl ConnectionTrait,
    webhook: WebhookKey,
    states: &[State],
    start: Start,
    size: u32,
) -> Result<(Vec<NotificationView>, bool), Error> {
    let mut rows = Vec::new();
    for query in page_queries(webhook, states, start) {
        rows.extend(query.limit(pages::limit(size)).all(connection).await?);
    }
    rows.sort_by_key(|row| (row.created_at, row.id));
    // Its state may have changed between two queries.
    rows.dedup_by_key(|row| row.id);
    if !matches!(start, Start::NewerThan(_)) {
        rows.reverse();
    }
    let (rows, has_more) = pages::cut(rows, start, size);
    let page = rows.into_iter().map(NotificationView::try_from);
    Ok((page.collect::<Result<_, _>>()?, has_more))
}

/// The queries for a webhook's notifications in some states (in all, if empty), from a start: one for each state, since
/// only a state's own part of the index is in the order of creation.
pub(super) fn page_queries(
    webhook: WebhookKey,
    states: &[State],
    start: Start,
) -> Vec<Select<Entity>> {
    let all = pages::start_at(
        Entity::find().filter(of_webhook(webhook)),
        Column::CreatedAt,
        Column::Id,
        start,
    );
    if states.is_empty() {
        return vec![all];
    }
    let named = State::ALL
        .into_iter()
        .filter(|state| states.contains(state));
    named
        .map(|state| all.clone().filter(states::is(state)))
        .collect()
}

/// A notification of any store: the caller must check its store.
pub async fn find_of_any_store(
    connection: &impl ConnectionTrait,
    id: NotificationId,
) -> Result<Option<NotificationView>, Error> {
    rows::first(connection, Entity::find().filter(Column::Id.eq(id.0))).await
}

/// A store's notification.
pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: NotificationId,
) -> Result<Option<NotificationView>, Error> {
    rows::first(connection, Entity::find_by_id((store_id.0, id.0))).await
}

/// The attempts of some notifications of a store, oldest first.
pub async fn attempts(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    ids: impl IntoIterator<Item = NotificationId>,
) -> Result<HashMap<NotificationId, Vec<AttemptView>>, Error> {
    let rows = attempt::Entity::find()
        .filter(attempt::Column::StoreId.eq(store_id.0))
        .filter(attempt::Column::NotificationId.is_in(padded(ids.into_iter().map(|id| id.0))))
        .order_by_asc(attempt::Column::Number)
        .all(connection)
        .await?;
    let mut attempts: HashMap<_, Vec<_>> = HashMap::new();
    for row in rows {
        let inconsistent = |error| Error::inconsistent("attempts", error);
        let id = NotificationId(row.notification_id);
        attempts.entry(id).or_default().push(AttemptView {
            number: u32::try_from(row.number).map_err(inconsistent)?,
            failure: row.failure,
            status: row
                .status
                .map(u32::try_from)
                .transpose()
                .map_err(inconsistent)?,
            duration: row.duration,
            response_body: row.response_body,
            recorded_at: row.recorded_at.try_into()?,
        });
    }
    Ok(attempts)
}

impl TryFrom<Model> for NotificationView {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        let state = states::of_row(&row)?;
        let is_unfinished = matches!(state, State::Pending | State::Failed);
        Ok(Self {
            id: NotificationId(row.id),
            store_id: StoreId(row.store_id),
            webhook_id: WebhookId(row.webhook_id),
            event: row.event,
            delivery_id: DeliveryId(row.delivery_id),
            state,
            attempts: u32::try_from(row.attempts)
                .map_err(|error| Error::inconsistent("notifications", error))?,
            due_at: is_unfinished.then(|| row.due_at.try_into()).transpose()?,
            created_at: row.created_at.try_into()?,
            finished_at: Instant::optional(row.finished_at)?,
        })
    }
}
