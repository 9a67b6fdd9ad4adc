//! Completions in one statement, against real databases.

mod reads;

use domain::{
    delivery::Delivery,
    event::Object,
    id::StoreId,
    webhook::{Disabled, DisabledReason, Webhook},
    webhook_secrets::Secrets,
};
use sea_orm::{Database, TransactionTrait as _};

use super::*;
use crate::{Changes, Session, deliveries, fixture, personal_data, stores, webhooks};

const CREATED: Timestamp = Timestamp::UNIX_EPOCH;

fn now() -> Timestamp {
    Timestamp::from_second(60).unwrap()
}

async fn stored_delivery(storage: &Storage) -> Delivery {
    let store = fixture::store("A");
    stores::insert(storage.reader(), &store).await.unwrap();
    let delivery = fixture::delivery(store.id, CREATED);
    let new = fixture::new_delivery(delivery.clone());
    assert!(storage.insert_delivery(new).await.unwrap());
    delivery
}

async fn saved(storage: &Storage, delivery: &Delivery) -> Delivery {
    let found = deliveries::find(storage.reader(), delivery.store_id, delivery.id);
    found.await.unwrap().unwrap()
}

async fn read(storage: &Storage, id: TaskId) -> TaskToComplete {
    find(storage, id).await.unwrap().unwrap()
}

/// Completes a task as it was read, in the way of the caller.
async fn complete_read(storage: &Storage, read: &TaskToComplete) -> bool {
    let events = read.task.clone().complete(read.other_is_done, now());
    complete(storage, read, &events, now()).await.unwrap()
}

/// When a delivery was completed, in microseconds. It is not read with the delivery.
async fn completion_time(storage: &Storage, delivery: &Delivery) -> Option<i64> {
    let sql = "SELECT completed_at FROM deliveries WHERE id = $1";
    let found = rows::find_value(storage.reader(), sql, [delivery.id.0.into()]);
    found.await.unwrap().unwrap()
}

/// The events without numbers, in the order of their names.
async fn events(storage: &Storage) -> Vec<(StoreId, String, Object, Timestamp)> {
    let rows = crate::entity::event::Entity::find()
        .all(storage.reader())
        .await;
    let events = rows.unwrap().into_iter().map(|row| {
        assert_eq!((row.number, row.position), (None, None));
        assert_eq!(row.object_collection, "deliveries");
        let object = Object::Delivery(domain::id::DeliveryId(row.object_id));
        let created_at = row.created_at.try_into().unwrap();
        (StoreId(row.store_id), row.name, object, created_at)
    });
    let mut events: Vec<_> = events.collect();
    events.sort_by(|(_, first, ..), (_, second, ..)| first.cmp(second));
    events
}

/// Changes a stored delivery in a transaction.
async fn change(storage: &Storage, changes: Changes) {
    let write =
        storage.write(move |transaction: Session| async move { changes.make(&transaction).await });
    write.await.unwrap();
}

/// The events of a delivery with these names.
fn events_of(delivery: &Delivery, names: &[&str]) -> Vec<(StoreId, String, Object, Timestamp)> {
    let event = |name: &&str| {
        let object = Object::Delivery(delivery.id);
        (delivery.store_id, (*name).to_owned(), object, now())
    };
    names.iter().map(event).collect()
}

#[tokio::test]
async fn a_pickup_and_then_the_dropoff_are_completed_with_an_event_each() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let mut delivery = stored_delivery(&storage).await;
    let (pickup, dropoff) = (delivery.pickup.id, delivery.dropoff.id);
    let (picked, completed) = ("delivery.picked", "delivery.completed");

    assert!(complete_read(&storage, &read(&storage, pickup).await).await);
    delivery.complete_task(pickup, now()).unwrap();
    assert_eq!(saved(&storage, &delivery).await, delivery);
    assert_eq!(events(&storage).await, events_of(&delivery, &[picked]));
    assert_eq!(completion_time(&storage, &delivery).await, None);

    assert!(complete_read(&storage, &read(&storage, dropoff).await).await);
    delivery.complete_task(dropoff, now()).unwrap();
    assert_eq!(saved(&storage, &delivery).await, delivery);
    let expected = events_of(&delivery, &[completed, picked]);
    assert_eq!(events(&storage).await, expected);
    assert_eq!(completion_time(&storage, &delivery).await, Some(60_000_000));
}

#[tokio::test]
async fn a_dropoff_that_is_first_has_no_event_and_the_pickup_after_it_has_two() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let mut delivery = stored_delivery(&storage).await;
    let dropoff = read(&storage, delivery.dropoff.id).await;
    assert!(!complete_read(&storage, &dropoff).await);
    assert_eq!(saved(&storage, &delivery).await, delivery);
    delivery.complete_task(delivery.dropoff.id, now()).unwrap();
    let changes = deliveries::completion(&delivery, &delivery.dropoff, now());
    change(&storage, changes.unwrap()).await;

    let pickup = read(&storage, delivery.pickup.id).await;
    assert!(complete_read(&storage, &pickup).await);

    delivery.complete_task(delivery.pickup.id, now()).unwrap();
    assert_eq!(saved(&storage, &delivery).await, delivery);
    let expected = events_of(&delivery, &["delivery.completed", "delivery.picked"]);
    assert_eq!(events(&storage).await, expected);
    assert_eq!(completion_time(&storage, &delivery).await, Some(60_000_000));
}

fn webhook(delivery: &Delivery, event: EventName) -> Webhook {
    Webhook {
        store_id: delivery.store_id,
        event,
        ..fixture::webhook(CREATED)
    }
}

/// For picked deliveries.
fn disabled_webhook(delivery: &Delivery) -> Webhook {
    let disabled = Disabled {
        at: CREATED,
        reason: DisabledReason::Gone,
    };
    Webhook {
        disabled: Some(disabled),
        ..webhook(delivery, EventName::DeliveryPicked)
    }
}

async fn insert_webhook(storage: &Storage, webhook: Webhook) {
    let write = storage.write(move |transaction: Session| async move {
        let secrets = Secrets::new(b"encrypted".to_vec());
        webhooks::insert(&transaction, &webhook, &secrets).await
    });
    write.await.unwrap();
}

#[tokio::test]
async fn nothing_changes_if_an_enabled_webhook_subscribes_to_an_event() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    for (subscribed, dropoff_is_done, expected) in [
        (EventName::DeliveryPicked, false, false),
        (EventName::DeliveryCompleted, false, true),
        (EventName::DeliveryPicked, true, false),
        (EventName::DeliveryCompleted, true, false),
        (EventName::DeliveryCancelled, true, true),
    ] {
        let mut delivery = stored_delivery(&storage).await;
        insert_webhook(&storage, webhook(&delivery, subscribed)).await;
        insert_webhook(&storage, disabled_webhook(&delivery)).await;
        if dropoff_is_done {
            delivery.complete_task(delivery.dropoff.id, now()).unwrap();
            let changes = deliveries::completion(&delivery, &delivery.dropoff, now());
            change(&storage, changes.unwrap()).await;
        }
        let pickup = read(&storage, delivery.pickup.id).await;
        if !expected {
            // As if it had been read before the webhook was created.
            let mut read_before = pickup.clone();
            read_before.subscribed.clear();
            assert!(!complete_read(&storage, &read_before).await);
        }
        let before = fixture::statements(&storage, "WITH").await;

        let is_completed = complete_read(&storage, &pickup).await;

        assert_eq!(is_completed, expected, "{subscribed:?}");
        let executed = fixture::statements(&storage, "WITH").await - before;
        assert_eq!(executed, usize::from(expected));
        if expected {
            delivery.complete_task(delivery.pickup.id, now()).unwrap();
        }
        assert_eq!(saved(&storage, &delivery).await, delivery);
        let completed_at = (expected && dropoff_is_done).then_some(60_000_000);
        assert_eq!(completion_time(&storage, &delivery).await, completed_at);
    }
    // Of the two pickups that were completed.
    assert_eq!(events(&storage).await.len(), 3);
}

/// What another transaction has done since a task was read.
#[derive(Clone, Copy, Debug)]
enum Changed {
    Nothing,
    Cancelled,
    Picked,
    Erased,
}

#[tokio::test]
async fn nothing_changes_if_the_delivery_is_not_as_it_was_read() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    for (changed, completes_pickup, other_is_done) in [
        (Changed::Cancelled, true, false),
        (Changed::Picked, true, false),
        (Changed::Picked, false, false),
        (Changed::Nothing, false, true),
        (Changed::Erased, true, false),
    ] {
        let mut delivery = stored_delivery(&storage).await;
        let task = if completes_pickup {
            &delivery.pickup
        } else {
            &delivery.dropoff
        };
        let mut read = read(&storage, task.id).await;
        read.other_is_done = other_is_done;
        let changes = match changed {
            Changed::Nothing => Changes::default(),
            Changed::Cancelled => {
                delivery.cancel(now()).unwrap();
                deliveries::cancellation(&delivery).unwrap()
            }
            Changed::Picked => {
                delivery.complete_task(delivery.pickup.id, now()).unwrap();
                deliveries::completion(&delivery, &delivery.pickup, now()).unwrap()
            }
            Changed::Erased => {
                for task in [&mut delivery.pickup, &mut delivery.dropoff] {
                    task.plan.erase();
                }
                Changes::default()
            }
        };
        let key = (delivery.store_id, delivery.id);
        let write = storage.write(move |transaction: Session| async move {
            if matches!(changed, Changed::Erased) {
                personal_data::erase(&transaction, key, now()).await?;
            }
            changes.make(&transaction).await
        });
        write.await.unwrap();

        let events_of_both = [EventName::DeliveryPicked, EventName::DeliveryCompleted];
        let completed = complete(&storage, &read, &events_of_both, now()).await;

        assert!(!completed.unwrap(), "{changed:?}");
        assert_eq!(saved(&storage, &delivery).await, delivery, "{changed:?}");
        assert_eq!(completion_time(&storage, &delivery).await, None);
    }
    assert_eq!(events(&storage).await, []);
}

/// It does not wait: a webhook that is created meanwhile would not be notified.
#[tokio::test]
async fn nothing_changes_while_another_transaction_has_locked_the_delivery() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let storage = Storage::connect(&url, 3).await.unwrap();
    let mut delivery = stored_delivery(&storage).await;
    let (store_id, id) = (delivery.store_id, delivery.id);
    let pickup = read(&storage, delivery.pickup.id).await;
    let database = Database::connect(url).await.unwrap();
    for is_erasure in [false, true] {
        let other = database.begin().await.unwrap();
        if is_erasure {
            personal_data::erase(&other, (store_id, id), now())
                .await
                .unwrap();
        } else {
            let locked = deliveries::find_and_lock(&other, store_id, id).await;
            assert!(locked.unwrap().is_some());
        }

        assert!(!complete_read(&storage, &pickup).await);

        other.rollback().await.unwrap();
        assert_eq!(saved(&storage, &delivery).await, delivery);
    }
    assert!(complete_read(&storage, &pickup).await);
    delivery.complete_task(delivery.pickup.id, now()).unwrap();
    assert_eq!(saved(&storage, &delivery).await, delivery);
}

/// Both were read while both were to do. If both were completed, there would be no event for the completed
/// delivery. Also with the settings that change how statements are executed.
#[tokio::test]
async fn of_two_concurrent_completions_of_a_delivery_exactly_one_succeeds() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    for setting in [
        "",
        "&statement-cache-capacity=0",
        "&options=-cdefault_transaction_isolation=serializable",
    ] {
        let storage = Storage::connect(&format!("{url}{setting}"), 4).await;
        let storage = storage.unwrap();
        for _ in 0..20 {
            let mut delivery = stored_delivery(&storage).await;
            let pickup = read(&storage, delivery.pickup.id).await;
            // As if the dropoff had an event.
            let mut dropoff = pickup.clone();
            dropoff.task.id = delivery.dropoff.id;

            let (picked, dropped) = tokio::join!(
                complete_read(&storage, &pickup),
                complete_read(&storage, &dropoff)
            );

            assert_ne!(picked, dropped, "{setting}");
            let first = if picked { &pickup } else { &dropoff };
            delivery.complete_task(first.task.id, now()).unwrap();
            assert_eq!(saved(&storage, &delivery).await, delivery);
            assert_eq!(completion_time(&storage, &delivery).await, None);
        }
        let count = events(&storage).await.len();
        let removed = crate::entity::event::Entity::delete_many();
        removed.exec(storage.reader()).await.unwrap();
        assert_eq!(count, 20, "{setting}");
    }
}

#[tokio::test]
async fn sqlite_completes_no_task_without_a_transaction() {
    let (_directory, storage) = fixture::sqlite().await;
    let delivery = stored_delivery(&storage).await;
    let pickup = read(&storage, delivery.pickup.id).await;

    assert!(!complete_read(&storage, &pickup).await);

    assert_eq!(saved(&storage, &delivery).await, delivery);
}
