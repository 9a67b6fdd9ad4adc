//! The completion of a task by one statement of `PostgreSQL`, if no webhook is notified of its event.
//! If the conditions are not met, nothing changes, and a transaction must complete the task, which has three
//! round trips more.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use domain::{
    event::EventName,
    id::{EventId, TaskId},
};
use sea_orm::Value;

pub use super::task_to_complete::TaskToComplete;
use super::{
    Storage,
    concurrent_writes::{spawned, with_retries},
    entity::instant::Instant,
    events::DELIVERIES,
};
use crate::prelude::*;

pub async fn find(storage: &Storage, id: TaskId) -> Result<Option<TaskToComplete>, Error> {
    storage.tasks_to_complete.find(id.0).await
}

/// Completes a task, and its delivery if the other task is done, and inserts the events. Returns false, and
/// changes nothing, if the state of a task is not as it was read, the delivery is cancelled, erased or
/// locked, an enabled webhook subscribes to an event, or there is no event; and always on `SQLite`, whose
/// transactions have no round trips. Executes no statement if that is known from what was read.
pub async fn complete(
    storage: &Storage,
    read: &TaskToComplete,
    events: &[EventName],
    now: Timestamp,
) -> Result<bool, Error> {
    let connections = storage.reader();
    let is_possible = connections.get_database_backend() == DbBackend::Postgres
        && read.task.cancelled_at.is_none()
        && !events.iter().any(|event| read.subscribed.contains(event));
    let last = events.len().checked_sub(1).filter(|_| is_possible);
    let Some(sql) = last.and_then(|last| COMPLETE.get(last)) else {
        return Ok(false);
    };
    let mut values: Vec<Value> = vec![
        read.store.id.0.into(),
        read.task.delivery_id.0.into(),
        read.task.id.0.into(),
        read.other_is_done.into(),
        Instant::from(now).into(),
    ];
    for event in events {
        values.extend([EventId::new().0.into(), event.as_str().into()]);
    }

    let connections = connections.clone();
    let completed =
        spawned(
            async move { with_retries(|| rows::execute(&connections, sql, values.clone())).await },
        );
    Ok(completed.await? > 0)
}

/// The statements that complete a task with one event and with two.
static COMPLETE: LazyLock<[String; 2]> = LazyLock::new(|| [1, 2].map(complete_with));

/// It does not wait for locks: after a wait, it would see the webhooks as they were when it began, and miss
/// one that was created meanwhile. Of a delivery or task that has changed since the statement began,
/// `PostgreSQL` locks the newest version and checks its conditions. The changes are made after that.
fn complete_with(events: usize) -> String {
    let names = (7..).step_by(2).take(events);
    let names = names.map(|number| format!("${number}"));
    let names = names.collect::<Vec<_>>().join(", ");
    let events = rows::placeholders(&mut (6..), events, 2);
    format!(
        "WITH unchanged AS (
            SELECT tasks.id FROM deliveries JOIN tasks
                ON tasks.store_id = deliveries.store_id AND tasks.delivery_id = deliveries.id
            WHERE deliveries.store_id = $1 AND deliveries.id = $2
                AND deliveries.cancelled_at IS NULL AND deliveries.erased_at IS NULL
                AND (tasks.completed_at IS NOT NULL) = (tasks.id <> $3 AND $4)
            FOR UPDATE SKIP LOCKED
        ), conditions AS (
            SELECT (SELECT COUNT(*) FROM unchanged) = 2 AND NOT EXISTS (
                SELECT 1 FROM webhooks
                WHERE store_id = $1 AND event IN ({names}) AND disabled_at IS NULL
            ) AS all_hold
        ), completed_delivery AS (
            UPDATE deliveries SET completed_at = $5
            WHERE store_id = $1 AND id = $2 AND $4 AND (SELECT all_hold FROM conditions)
        ), new_events AS (
            INSERT INTO events (store_id, id, name, object_collection, object_id, created_at)
            SELECT $1, event.id, event.name, '{DELIVERIES}', $2, $5
            FROM (VALUES {events}) AS event (id, name)
            WHERE (SELECT all_hold FROM conditions)
        )
        UPDATE tasks SET completed_at = $5, updated_at = $5
        WHERE store_id = $1 AND id = $3 AND (SELECT all_hold FROM conditions)"
    )
}
