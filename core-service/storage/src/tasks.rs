//! Tasks: their rows, made of domain types and converted to them, and the lookups of one task.

use domain::{
    courier::{ListKey, Place},
    id::{CourierId, DeliveryId, StoreId, TaskId},
    store::Store,
    task::{Actor, StateName, Task, TaskDetails, TaskState, TimeWindow},
};
use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Storage,
    entity::{ByPosition as _, Instant, store, task},
    shared_reads::SharedRow,
};
use crate::prelude::*;

/// A task of a store.
pub async fn find(storage: &Storage, store_id: StoreId, id: TaskId) -> Result<Option<Task>, Error> {
    storage.tasks.find((store_id.0, id.0)).await
}

impl SharedRow for Task {
    /// Its store and id.
    type Key = (Uuid, Uuid);

    const FROM: &'static str = "tasks";
    const KEY: &'static [&'static str] = &["tasks.store_id", "tasks.id"];

    fn columns() -> Vec<String> {
        rows::columns::<task::Entity>().collect()
    }

    fn values((store_id, id): &Self::Key) -> Vec<Value> {
        vec![(*store_id).into(), (*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        Ok((
            row.try_get_by_index(task::Column::StoreId as usize)?,
            row.try_get_by_index(task::Column::Id as usize)?,
        ))
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        task::Model::at(row, 0)?.try_into()
    }
}

/// A task of any store with its store: for the platform's own programs (`tasks:all`).
pub async fn find_of_any_store(
    storage: &Storage,
    id: TaskId,
) -> Result<Option<(Store, Task)>, Error> {
    storage.tasks_of_any_store.find(id.0).await
}

impl SharedRow for (Store, Task) {
    type Key = Uuid;

    const FROM: &'static str = "tasks JOIN stores ON stores.id = tasks.store_id";
    const KEY: &'static [&'static str] = &["tasks.id"];

    fn columns() -> Vec<String> {
        let stores = rows::columns::<store::Entity>();
        rows::columns::<task::Entity>().chain(stores).collect()
    }

    fn values(id: &Self::Key) -> Vec<Value> {
        vec![(*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        row.try_get_by_index(task::Column::Id as usize)
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        let store = store::Model::at(row, task::Model::COLUMNS.len())?;
        Ok((store.try_into()?, Task::read(row)?))
    }
}

impl TryFrom<task::Model> for Task {
    type Error = Error;

    fn try_from(row: task::Model) -> Result<Self, Self::Error> {
        let (state, state_since, state_set_by) = state(&row)?;
        let list = list_key("tasks", row.courier_id, row.list_day.as_deref())?;
        let count = |number: Option<i64>| -> Result<u32, Error> {
            let number = number.unwrap_or_default().try_into();
            number.map_err(|error| Error::inconsistent("tasks", error))
        };
        let position = count(row.list_position)?;
        Ok(Self {
            id: TaskId(row.id),
            delivery_id: DeliveryId(row.delivery_id),
            kind: row
                .kind
                .parse()
                .map_err(|error: String| Error::inconsistent("tasks", error))?,
            state,
            state_since: state_since.try_into()?,
            state_set_by,
            address: row.address.0,
            window: TimeWindow {
                after: row.after.try_into()?,
                before: row.before.try_into()?,
            },
            has_time_slot: row.time_slot,
            details: TaskDetails {
                comments: row.comments,
                weight: row.weight,
                packages: row.packages.0,
                tags: row.tags.0,
                metadata: row.metadata.0,
            },
            place: list.map(|list| Place { list, position }),
            open_incidents: count(row.open_incidents)?,
            images: row.images.map_or_else(Vec::new, |images| images.0),
            created_at: row.created_at.try_into()?,
            updated_at: row.updated_at.try_into()?,
        })
    }
}

/// A task's state, since when, and who set it. A core of an earlier version writes only `completed_at` and
/// `cancelled_at`.
fn state(row: &task::Model) -> Result<(TaskState, Instant, Actor), Error> {
    let inconsistent = |what: String| Error::inconsistent("tasks", what);
    // A core of an earlier version leaves the actor of the state before.
    let set_by = |since, default| match row.state_set_by.as_deref() {
        _ if row.state_since != Some(since) => Ok(default),
        None => Ok(default),
        Some(name) => name.parse().map_err(inconsistent),
    };
    if let Some(since) = row.completed_at {
        // By a program with `tasks:all`, which acts for dispatch.
        return Ok((TaskState::Done, since, set_by(since, Actor::Dispatch)?));
    }
    if let Some(since) = row.cancelled_at {
        return Ok((TaskState::Cancelled, since, set_by(since, Actor::Shop)?));
    }
    let name = row.state.as_deref().map(str::parse);
    let state = match name.transpose().map_err(inconsistent)? {
        None => TaskState::Todo,
        Some(StateName::Doing) => TaskState::Doing,
        Some(StateName::Failed) => {
            let reason = row.failure_reason.as_deref().unwrap_or_default().parse();
            TaskState::Failed(reason.map_err(inconsistent)?)
        }
        Some(other) => return Err(inconsistent(format!("state {other:?}"))),
    };
    let since = row.state_since.unwrap_or(row.created_at);
    Ok((state, since, set_by(since, Actor::Shop)?))
}

/// The list in a row's columns, if any.
pub(super) fn list_key(
    table: &'static str,
    courier_id: Option<Uuid>,
    day: Option<&str>,
) -> Result<Option<ListKey>, Error> {
    let (Some(id), Some(day)) = (courier_id, day) else {
        return Ok(None);
    };
    Ok(Some(ListKey {
        day: day
            .parse()
            .map_err(|error| Error::inconsistent(table, error))?,
        courier_id: CourierId(id),
    }))
}

/// What may change in a task after its creation.
pub(super) fn changed_columns(store_id: StoreId, task: &Task) -> task::ActiveModel {
    let state = match task.state {
        TaskState::Doing | TaskState::Failed(_) => Some(task.state.name()),
        TaskState::Todo | TaskState::Done | TaskState::Cancelled => None,
    };
    task::ActiveModel {
        store_id: Set(store_id.0),
        id: Set(task.id.0),
        after: Set(task.window.after.into()),
        before: Set(task.window.before.into()),
        time_slot: Set(task.has_time_slot),
        updated_at: Set(task.updated_at.into()),
        completed_at: Set(task.completed_at().map(Into::into)),
        cancelled_at: Set(task.cancelled_at().map(Into::into)),
        state: Set(state.map(|state| state.as_str().to_owned())),
        state_since: Set(Some(task.state_since.into())),
        state_set_by: Set(Some(task.state_set_by.as_str().to_owned())),
        failure_reason: Set(failure_reason(&task.state)),
        courier_id: Set(task.place.map(|place| place.list.courier_id.0)),
        list_day: Set(task.place.map(|place| place.list.day.to_string())),
        list_position: Set(task.place.map(|place| place.position.into())),
        open_incidents: Set((task.open_incidents > 0).then_some(task.open_incidents.into())),
        ..Default::default()
    }
}

pub(super) fn failure_reason(state: &TaskState) -> Option<String> {
    match state {
        TaskState::Failed(reason) => Some(reason.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, stores};

    #[tokio::test]
    async fn a_task_of_any_store_is_found_with_its_store() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let store = fixture::store("A");
            stores::insert(storage.reader(), &store).await.unwrap();
            let delivery = fixture::delivery(store.id, Timestamp::UNIX_EPOCH);
            let new = fixture::new_delivery(delivery.clone());
            assert!(storage.insert_delivery(new).await.unwrap());

            let found = find_of_any_store(&storage, delivery.dropoff.id).await;

            let (store, task) = found.unwrap().unwrap();
            assert_eq!(
                (store.id, &*store.display_name, task),
                (delivery.store_id, "A", delivery.dropoff)
            );
            let unknown = find_of_any_store(&storage, TaskId::new()).await;
            assert!(unknown.unwrap().is_none());
        }
    }
}
