//! What the history of a task says about a courier that does not have it any more. All of it is read in the range of the
//! task, by the history's primary key.

#[cfg(test)]
mod tests;

use domain::{
    id::{CourierId, StoreId, TaskId},
    task_event::{TaskEvent, TransitionName},
    worker::Placement,
};

use super::{
    entity::{
        Instant,
        task_event::{Column, Entity, Model},
    },
    task_events,
    tasks::list_key,
};
use crate::prelude::*;

/// The transitions that put a task into a list or out of one.
const PLACEMENTS: [TransitionName; 3] = [
    TransitionName::Assigned,
    TransitionName::Unassigned,
    TransitionName::Rescheduled,
];

/// The placements of a store's task since an instant, and the one before, oldest first.
pub async fn placements(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    since: Timestamp,
) -> Result<Vec<Placement>, Error> {
    let since = Instant::from(since);
    let query = of(store_id, task_id)
        .filter(Column::Transition.is_in(PLACEMENTS.map(TransitionName::as_str)));
    let before = query.clone().filter(Column::CreatedAt.lt(since));
    let before = before.order_by_desc(Column::CreatedAt);
    let after = query.filter(Column::CreatedAt.gte(since));
    let after = after.order_by_asc(Column::CreatedAt);
    let before = before.one(connection).await?;
    let after = after.all(connection).await?;
    before.iter().chain(&after).map(placement).collect()
}

fn placement(row: &Model) -> Result<Placement, Error> {
    Ok(Placement {
        at: row.created_at.try_into()?,
        // No list of a reschedule: it has its courier, if any, but no day.
        list: list_key("task_events", row.courier_id, row.list_day.as_deref())?,
    })
}

/// The courier who reported the change of a task at an instant, or for whom.
pub async fn courier_at(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    task_id: TaskId,
    at: Timestamp,
) -> Result<Option<CourierId>, Error> {
    let query = of(store_id, task_id).filter(Column::CreatedAt.eq(Instant::from(at)));
    let row = query.one(connection).await?;
    Ok(row.and_then(|row| row.courier_id).map(CourierId))
}

/// Whether the history has a conflict of the same courier and command since an instant.
pub async fn has_conflict(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    conflict: &TaskEvent,
    is_failure: bool,
    since: Timestamp,
) -> Result<bool, Error> {
    let reason = if is_failure {
        Column::Reason.is_not_null()
    } else {
        Column::Reason.is_null()
    };
    let query = of(store_id, conflict.task_id)
        .filter(Column::CreatedAt.gt(Instant::from(since)))
        .filter(Column::Transition.eq(TransitionName::Conflict.as_str()))
        .filter(Column::CourierId.eq(conflict.courier_id.map(|id| id.0)))
        .filter(reason);
    rows::exist(connection, query).await
}

fn of(store_id: StoreId, task_id: TaskId) -> Select<Entity> {
    let query = Entity::find().filter(Column::StoreId.eq(store_id.0));
    query.filter(Column::TaskId.eq(task_id.0))
}

/// Inserts an event of a task that changes nothing else.
pub async fn insert(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    event: &TaskEvent,
) -> Result<(), Error> {
    let insert = task_events::insertion(store_id, std::slice::from_ref(event));
    insert.exec_without_returning(transaction).await?;
    Ok(())
}
