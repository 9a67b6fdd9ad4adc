//! Changes to deliveries, and reads that wait for the changes of another transaction.

use std::time::Duration;

use domain::{
    delivery::Delivery,
    event::EventName,
    lifecycle::{Command, Reschedule},
    task::{Actor, TaskKind, TimeWindow},
    task_correction::Correction,
    tracking::TrackingLink,
    webhook::Webhook,
    webhook_secrets::Secrets,
};
use jiff::SignedDuration;
use sea_orm::{Database, TransactionTrait as _};

use super::*;
use crate::{
    Storage,
    entity::store,
    fixture,
    notifications::{self, DeliveryChange},
    personal_data, webhooks,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A stored delivery, on `PostgreSQL`.
async fn stored_delivery() -> Option<(String, Storage, Delivery)> {
    let url = fixture::postgres_url()?;
    let storage = Storage::connect(&url, 2).await.unwrap();
    let delivery = insert_delivery(&storage).await;
    Some((url, storage, delivery))
}

async fn insert_delivery(storage: &Storage) -> Delivery {
    let store = fixture::store("A");
    crate::stores::insert(storage.reader(), &store)
        .await
        .unwrap();
    let delivery = fixture::delivery(store.id, NOW);
    let new = fixture::new_delivery(delivery.clone());
    assert!(storage.insert_delivery(new).await.unwrap());
    delivery
}

fn complete(delivery: &mut Delivery, kind: TaskKind) -> Vec<EventName> {
    let applied = delivery.apply(kind, &Command::Complete, Actor::Courier, NOW);
    applied.unwrap().unwrap()
}

#[tokio::test]
async fn a_delivery_is_read_in_every_state_as_it_was_changed() {
    let fail = Command::Fail("NOT_AT_HOME".parse().unwrap());
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let mut delivery = insert_delivery(&storage).await;
        let window = TimeWindow {
            after: NOW + SignedDuration::from_hours(1),
            before: NOW + SignedDuration::from_hours(2),
        };
        let reschedule = Command::Reschedule(Reschedule {
            window,
            is_time_slot: false,
            both: true,
        });
        for (minute, (kind, command)) in [
            (TaskKind::Pickup, Command::Start),
            (TaskKind::Pickup, Command::Complete),
            (TaskKind::Pickup, Command::Reopen),
            (TaskKind::Dropoff, fail.clone()),
            (TaskKind::Dropoff, reschedule),
            (TaskKind::Pickup, Command::Complete),
            (TaskKind::Dropoff, Command::Complete),
        ]
        .into_iter()
        .enumerate()
        {
            let now = NOW + SignedDuration::from_mins(i64::try_from(minute).unwrap());
            let before = delivery.clone();
            let applied = delivery.apply(kind, &command, Actor::Dispatch, now);
            assert!(applied.unwrap().is_some(), "{command:?}");

            let changes = changes(&before, &delivery, &[]).unwrap();
            let write = storage.write(move |transaction| async move {
                changes.make(&transaction).await?;
                Ok::<_, Error>(())
            });
            write.await.unwrap();

            let found = find(storage.reader(), delivery.store_id, delivery.id).await;
            assert_eq!(found.unwrap().as_ref(), Some(&delivery), "{command:?}");
        }
    }
}

/// It writes when a task was done, and not by whom: by a program with `tasks:all`, which acts for dispatch.
#[tokio::test]
async fn a_completion_by_an_earlier_version_is_by_dispatch() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let delivery = insert_delivery(&storage).await;
        let update = "UPDATE tasks SET completed_at = $1 WHERE id = $2";
        let values = [Instant::from(NOW).into(), delivery.pickup.id.0.into()];
        let write = storage
            .write(move |transaction| async move { rows::run(&transaction, update, values).await });
        write.await.unwrap();

        let found = find(storage.reader(), delivery.store_id, delivery.id).await;

        let pickup = found.unwrap().unwrap().pickup;
        assert_eq!(
            (pickup.is_done(), pickup.state_set_by),
            (true, Actor::Dispatch)
        );
    }
}

#[tokio::test]
async fn a_delivery_that_was_waited_for_has_the_changes_of_the_other_transaction() {
    for is_cancelled in [false, true] {
        let Some((url, storage, delivery)) = stored_delivery().await else {
            return;
        };
        let (store_id, id) = (delivery.store_id, delivery.id);
        let database = Database::connect(url).await.unwrap();
        let first = database.begin().await.unwrap();
        let mut updated = find_and_lock(&first, store_id, id).await.unwrap().unwrap();
        assert_eq!(updated, delivery);
        if is_cancelled {
            updated.cancel(Actor::Shop, NOW).unwrap();
        } else {
            complete(&mut updated, TaskKind::Pickup);
        }
        changes(&delivery, &updated, &[])
            .unwrap()
            .make(&first)
            .await
            .unwrap();

        let second = database.begin().await.unwrap();
        let commit_first = async {
            fixture::wait_for_locks(&storage, 1).await;
            first.commit().await.unwrap();
        };
        let both = async { tokio::join!(find_and_lock(&second, store_id, id), commit_first) };
        let (found, ()) = tokio::time::timeout(Duration::from_mins(1), both)
            .await
            .expect("the second transaction should wait for the first");

        assert_eq!(found.unwrap(), Some(updated));
    }
}

/// Its notifications are selected after the wait.
#[tokio::test]
async fn a_webhook_that_is_created_while_a_completion_waits_is_notified() {
    let Some((url, storage, delivery)) = stored_delivery().await else {
        return;
    };
    let (store_id, id) = (delivery.store_id, delivery.id);
    let webhook = Webhook {
        store_id,
        event: EventName::DeliveryPicked.as_str().to_owned(),
        ..fixture::webhook(NOW)
    };
    let webhook_id = webhook.id;
    let database = Database::connect(url).await.unwrap();
    let other = database.begin().await.unwrap();
    find_and_lock(&other, store_id, id).await.unwrap().unwrap();

    let complete = storage.write(move |transaction| async move {
        let found = find_and_lock(&transaction, store_id, id).await?;
        let before = found.unwrap();
        let mut delivery = before.clone();
        let change = DeliveryChange {
            store_id,
            delivery_id: id,
            events: complete(&mut delivery, TaskKind::Pickup),
            changes: changes(&before, &delivery, &[])?,
        };
        notifications::record_events(&transaction, change, NOW).await
    });
    let create_webhook = async {
        fixture::wait_for_locks(&storage, 1).await;
        let create = storage.write(move |transaction| async move {
            let secrets = Secrets::new(b"encrypted".to_vec());
            webhooks::insert(&transaction, &webhook, &secrets).await
        });
        create.await.unwrap();
        other.rollback().await.unwrap();
    };
    let (new, ()) = tokio::join!(complete, create_webhook);

    let notified: Vec<_> = new
        .unwrap()
        .iter()
        .map(|new| new.leased.target.key.webhook_id)
        .collect();
    assert_eq!(notified, [webhook_id]);
}

#[tokio::test]
async fn changes_are_made_together_with_a_query_of_another_table() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let before = insert_delivery(&storage).await;
        let mut delivery = before.clone();
        let key = (delivery.store_id, delivery.id);
        complete(&mut delivery, TaskKind::Pickup);
        complete(&mut delivery, TaskKind::Dropoff);
        let changes = changes(&before, &delivery, &[]).unwrap();

        let found = storage.write(move |transaction| async move {
            let query = store::Entity::find().into_query();
            changes.make_and_query(&transaction, query).await
        });

        assert_eq!(found.await.unwrap().len(), 1);
        let saved = find(storage.reader(), key.0, key.1).await.unwrap();
        assert_eq!(saved, Some(delivery));
    }
}

#[tokio::test]
async fn a_task_is_read_as_it_was_corrected_and_the_other_one_as_before() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let before = insert_delivery(&storage).await;
        let mut after = before.clone();
        let corrections = [
            Correction::Comments("Ring twice".to_owned()),
            Correction::Telephone(Some("+33612345678".to_owned())),
            Correction::Description(Some("Second floor".to_owned())),
        ];
        let now = NOW + SignedDuration::from_mins(1);
        let corrected = after.correct(TaskKind::Dropoff, &corrections, now);
        assert!(corrected.unwrap().is_some());

        let changes = changes(&before, &after, &[]).unwrap();
        let write = storage.write(move |transaction| async move {
            let query = store::Entity::find().into_query();
            changes.make_and_query(&transaction, query).await
        });
        write.await.unwrap();

        let stored = find(storage.reader(), before.store_id, before.id).await;
        assert_eq!(stored.unwrap(), Some(after));
    }
}

#[tokio::test]
async fn the_link_of_a_tracking_page_is_revoked_once_and_lost_when_its_delivery_is_erased() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (store_id, link) = (StoreId::new(), TrackingLink::new([7; 16]));
        let delivery = Delivery {
            tracking: Some(link),
            ..fixture::delivery(store_id, NOW)
        };
        let id = delivery.id;
        let new = fixture::new_delivery(delivery);
        assert!(storage.insert_delivery(new).await.unwrap());
        let stored = async || {
            let found = find(storage.reader(), store_id, id).await.unwrap();
            found.unwrap().tracking
        };
        let revoke = async |at: Timestamp| {
            let revoke = storage.write(move |transaction| async move {
                revoke_tracking(&transaction, store_id, id, at).await
            });
            revoke.await.unwrap()
        };
        assert_eq!(stored().await, Some(link));

        let later = NOW + SignedDuration::from_secs(1);
        assert!(revoke(NOW).await);
        assert!(!revoke(later).await);

        let revoked_at = Some(NOW);
        assert_eq!(stored().await, Some(TrackingLink { revoked_at, ..link }));
        let erase = storage.write(move |transaction| async move {
            personal_data::erase(&transaction, store_id, id, later).await
        });
        erase.await.unwrap();
        assert_eq!(stored().await, None);
        assert!(!revoke(later).await);
    }
}
