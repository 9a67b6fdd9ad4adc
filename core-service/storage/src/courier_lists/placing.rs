//! New places of tasks: written for many deliveries by a fixed number of statements.

use domain::{delivery::Delivery, event::EventName, task::Task, task_event::TaskEvent};
use sea_orm::Value;

use crate::{
    deliveries::{MAX_DELIVERIES, stored_state},
    entity::{Instant, task_event},
    notifications::{self, NewNotification},
    prelude::*,
    task_changes::{self, Watched},
    task_events,
};

/// A delivery of which nothing changes but the places of its tasks.
#[derive(Clone, Debug)]
pub struct PlacedDelivery {
    pub before: Delivery,
    pub after: Delivery,
    /// What the change adds to it.
    pub history: Vec<TaskEvent>,
    pub events: Vec<EventName>,
}

impl PlacedDelivery {
    fn moved_tasks(&self) -> impl Iterator<Item = &Task> {
        let tasks = [
            (&self.before.pickup, &self.after.pickup),
            (&self.before.dropoff, &self.after.dropoff),
        ];
        let moved = tasks.into_iter().filter(|(before, after)| before != after);
        moved.map(|(_, after)| after)
    }

    /// Whether a task gets its first courier or loses its last one, which may change the delivery's state.
    fn is_filtered_otherwise(&self) -> bool {
        let has_courier = |delivery: &Delivery| {
            [&delivery.pickup, &delivery.dropoff].map(|task| task.place.is_some())
        };
        has_courier(&self.before) != has_courier(&self.after)
    }
}

/// Writes the places of the tasks of deliveries, which the transaction has locked, with their history and events.
/// Returns a notification for each enabled webhook that subscribes to one of them, for [`notifications::insert`].
pub async fn place(
    transaction: &impl ConnectionTrait,
    deliveries: &[PlacedDelivery],
    now: Timestamp,
) -> Result<Vec<NewNotification>, Error> {
    for chunk in deliveries.chunks(MAX_DELIVERIES) {
        let history = chunk.iter().flat_map(|placed| {
            let events = placed.history.iter();
            events.map(|event| task_events::row(placed.after.store_id, event))
        });
        // Executes no statement if there is no row.
        let insert = task_event::Entity::insert_many(history);
        insert.exec_without_returning(transaction).await?;
        update_tasks(transaction, chunk).await?;
        update_states(transaction, chunk).await?;
        let changed = chunk.iter().map(|placed| &placed.after);
        let changed = changed.map(|delivery| Watched::Delivery(delivery.store_id, delivery.id));
        let queued = task_changes::insertion(changed);
        queued.exec_without_returning(transaction).await?;
    }
    let events = deliveries.iter().flat_map(|placed| {
        let delivery = &placed.after;
        let names = placed.events.iter();
        names.map(|name| notifications::DeliveryEvent::new(delivery.store_id, delivery.id, *name))
    });
    let events: Vec<_> = events.collect();
    notifications::record_events_of_many(transaction, &events, now).await
}

async fn update_tasks(
    transaction: &impl ConnectionTrait,
    deliveries: &[PlacedDelivery],
) -> Result<(), Error> {
    let tasks = deliveries.iter().flat_map(|placed| {
        let tasks = placed.moved_tasks();
        tasks.map(|task| (placed.after.store_id, task))
    });
    let tasks = padded(tasks);
    let update = format!(
        "WITH placed (store_id, id, courier_id, list_day, list_position, updated_at) AS (VALUES {})
        UPDATE tasks SET courier_id = placed.courier_id, list_day = placed.list_day,
            list_position = placed.list_position, updated_at = placed.updated_at
        FROM placed WHERE tasks.store_id = placed.store_id AND tasks.id = placed.id",
        rows::placeholders(&mut (1..), tasks.len(), 6)
    );
    let values = tasks
        .into_iter()
        .flat_map(|(store_id, task)| -> [Value; 6] {
            let place = task.place;
            [
                store_id.0.into(),
                task.id.0.into(),
                place.map(|place| place.list.courier_id.0).into(),
                place.map(|place| place.list.day.to_string()).into(),
                place.map(|place| i64::from(place.position)).into(),
                Instant::from(task.updated_at).into(),
            ]
        });
    rows::run(transaction, &update, values).await
}

/// Of the column that lists filter deliveries by.
async fn update_states(
    transaction: &impl ConnectionTrait,
    deliveries: &[PlacedDelivery],
) -> Result<(), Error> {
    let changed = deliveries
        .iter()
        .filter(|placed| placed.is_filtered_otherwise());
    let changed = padded(changed.map(|placed| &placed.after));
    if changed.is_empty() {
        return Ok(());
    }
    let update = format!(
        "WITH placed (store_id, id, state) AS (VALUES {})
        UPDATE deliveries SET state = placed.state
        FROM placed WHERE deliveries.store_id = placed.store_id AND deliveries.id = placed.id",
        rows::placeholders(&mut (1..), changed.len(), 3)
    );
    let values = changed.into_iter().flat_map(|delivery| -> [Value; 3] {
        let (store_id, id) = (delivery.store_id.0, delivery.id.0);
        [store_id.into(), id.into(), stored_state(delivery).into()]
    });
    rows::run(transaction, &update, values).await
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc, time::Duration};

    use domain::{
        courier::{ListKey, Place},
        courier_lists::Places,
        device_clock::DeviceTimes,
        id::{ApiClientId, CourierId, StoreId},
        task::Actor,
        task_event::{Remarks, TaskReport},
        webhook::Webhook,
        webhook_secrets::Secrets,
    };
    use jiff::{SignedDuration, civil::Date};

    use super::*;
    use crate::{Storage, deliveries, entity::notification, fixture, webhooks};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Puts all tasks of deliveries into a list, or none.
    fn placed(
        deliveries: &[Delivery],
        courier_id: Option<CourierId>,
        minute: i64,
    ) -> Vec<PlacedDelivery> {
        let report = TaskReport {
            by: Actor::Dispatch,
            api_client_id: ApiClientId::new(),
            courier_id: None,
            times: DeviceTimes::default(),
            remarks: Remarks::default(),
        };
        let day = Date::constant(2026, 12, 1);
        let list = courier_id.map(|courier_id| ListKey { day, courier_id });
        let tasks = deliveries
            .iter()
            .flat_map(|delivery| [delivery.pickup.id, delivery.dropoff.id]);
        let in_list = |position| list.map(|list| Place { list, position });
        let places: Places = tasks.zip((0..).map(in_list)).collect();
        let now = NOW + SignedDuration::from_mins(minute);
        let changes = deliveries.iter().map(|before| {
            let mut after = before.clone();
            let events = after.place(&places, now).unwrap().unwrap();
            PlacedDelivery {
                history: report.events(before, &after, now),
                before: before.clone(),
                after,
                events,
            }
        });
        changes.collect()
    }

    /// Writes places, and returns how many statements that takes.
    async fn write(storage: &Arc<Storage>, placed: &[PlacedDelivery]) -> usize {
        let count = async || {
            let mut count = 0;
            for operation in ["SELECT", "INSERT", "UPDATE", "WITH"] {
                count += fixture::statements(storage, operation).await;
            }
            count
        };
        let before = count().await;
        let placed = placed.to_vec();
        let write = storage.write(move |transaction| {
            let placed = placed.clone();
            async move {
                let new = place(&transaction, &placed, NOW).await?;
                let lease = Duration::from_secs(1);
                notifications::insert(&transaction, &new, lease, NOW).await
            }
        });
        write.await.unwrap();
        count().await - before
    }

    /// A store with a webhook for assigned deliveries.
    async fn subscribed_store(storage: &Arc<Storage>) -> StoreId {
        let webhook = Webhook {
            event: EventName::DeliveryAssigned.as_str().to_owned(),
            ..fixture::webhook(NOW)
        };
        let store_id = webhook.store_id;
        let insert = storage.write(move |transaction| {
            let webhook = webhook.clone();
            async move {
                let secrets = Secrets::new(b"encrypted".to_vec());
                webhooks::insert(&transaction, &webhook, &secrets).await
            }
        });
        insert.await.unwrap();
        store_id
    }

    #[tokio::test]
    async fn the_places_of_200_tasks_take_as_many_statements_as_those_of_10() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let mut counted = Vec::new();
            for count in [5, 100] {
                let subscribed = subscribed_store(&storage).await;
                let mut created = Vec::new();
                for number in 0..count {
                    let store_id = [subscribed, StoreId::new()][number % 2];
                    let delivery = fixture::delivery(store_id, NOW);
                    let new = fixture::new_delivery(delivery.clone());
                    assert!(storage.insert_delivery(new).await.unwrap());
                    created.push(delivery);
                }

                let assigned = placed(&created, Some(CourierId::new()), 1);
                let of_assigning = write(&storage, &assigned).await;
                let moved: Vec<_> = assigned.into_iter().map(|placed| placed.after).collect();
                let moved = placed(&moved, Some(CourierId::new()), 2);
                let of_moving = write(&storage, &moved).await;
                counted.push([of_assigning, of_moving]);

                for placed in &moved {
                    let after = &placed.after;
                    let (reader, store_id) = (storage.reader(), after.store_id);
                    let found = deliveries::find(reader, store_id, after.id).await.unwrap();
                    assert_eq!(found.as_ref(), Some(after));
                    let history = task_events::list(reader, store_id, after.pickup.id, NOW, 9);
                    let (history, _) = history.await.unwrap();
                    assert_eq!(history.len(), 2);
                    assert_eq!(history[1..], placed.history[..1]);
                }
                let reader = storage.reader();
                let of_webhook = notification::Column::StoreId.eq(subscribed.0);
                let sent = notification::Entity::find().filter(of_webhook);
                let sent = sent.all(reader).await.unwrap().into_iter();
                let sent: BTreeSet<_> = sent.map(|row| row.delivery_id).collect();
                for (number, delivery) in created.iter().enumerate() {
                    assert_eq!(sent.contains(&delivery.id.0), number % 2 == 0);
                }
            }
            assert_eq!(counted[0], counted[1]);
        }
    }
}
