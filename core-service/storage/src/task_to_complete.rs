//! What the completion of a task depends on, read by one statement.

use domain::{event::EventName, store::Store, task::Task};
use sea_orm::{DbErr, Iterable as _, QueryResult, Value};

use super::{
    entity::{ByPosition as _, store, task},
    shared_reads::Keyed,
};
use crate::prelude::*;

/// A task of any store with what its completion depends on.
#[derive(Clone, Debug)]
pub struct TaskToComplete {
    pub store: Store,
    pub task: Task,
    /// Whether the other task of its delivery is done.
    pub other_is_done: bool,
    /// The events of completions to which an enabled webhook of the store subscribes.
    pub subscribed: Vec<EventName>,
}

/// The events of completions.
const EVENTS: [EventName; 2] = [EventName::DeliveryPicked, EventName::DeliveryCompleted];

impl Keyed for TaskToComplete {
    /// The id of the task.
    type Key = Uuid;

    const FROM: &'static str = "tasks JOIN stores ON stores.id = tasks.store_id";
    const KEY: &'static [&'static str] = &["tasks.id"];

    fn columns() -> Vec<String> {
        let stores = rows::columns::<store::Entity>();
        // Before a table is analysed, PostgreSQL would read all of it for a join.
        let other_is_done = "(
                SELECT other.completed_at IS NOT NULL FROM tasks AS other
                WHERE other.store_id = tasks.store_id AND other.delivery_id = tasks.delivery_id
                    AND other.id <> tasks.id LIMIT 1
            ) AS other_is_done";
        let is_subscribed = EVENTS.into_iter().enumerate().map(|(number, event)| {
            let event = event.as_str();
            format!(
                "(
                    SELECT 1 FROM webhooks
                    WHERE webhooks.store_id = tasks.store_id AND webhooks.event = '{event}'
                        AND webhooks.disabled_at IS NULL LIMIT 1
                ) IS NOT NULL AS is_subscribed_{number}"
            )
        });
        let columns = rows::columns::<task::Entity>().chain(stores);
        let columns = columns.chain([other_is_done.to_owned()]);
        columns.chain(is_subscribed).collect()
    }

    fn values(id: &Self::Key) -> Vec<Value> {
        vec![(*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        row.try_get_by_index(task::Column::Id as usize)
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        let of_store = task::Column::iter().count();
        let other_is_done = of_store + store::Column::iter().count();
        let mut subscribed = Vec::new();
        for (index, event) in (other_is_done + 1..).zip(EVENTS) {
            let is_subscribed: bool = row.try_get_by_index(index)?;
            subscribed.extend(is_subscribed.then_some(event));
        }
        Ok(Self {
            task: task::Model::at(row, 0)?.try_into()?,
            store: store::Model::at(row, of_store)?.try_into()?,
            other_is_done: row.try_get_by_index(other_is_done)?,
            subscribed,
        })
    }
}
