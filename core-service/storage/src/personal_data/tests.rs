//! Erased deliveries, and searches for them, on both databases.

use std::{sync::Arc, time::Duration};

use domain::{
    address::LatLng,
    delivery::Delivery,
    id::{NotificationId, WebhookId},
    notification::{Failure, Outcome},
    task::Task,
};
use jiff::SignedDuration;
use sea_orm::{Database, DbBackend, Statement, TransactionTrait as _};

use super::*;
use crate::{
    Storage, deliveries,
    entity::{attempt, notification},
    fixture,
    notifications::{AttemptReport, Lease, RecordedAttempt, insert_attempts},
    stores,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const TELEPHONE: &str = "+33612345678";

/// Runs a test on both databases.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn sqlite() {
                let (_directory, storage) = crate::fixture::sqlite().await;
                super::$name(storage).await;
            }

            #[tokio::test]
            async fn postgres() {
                if let Some(storage) = crate::fixture::postgres().await {
                    super::$name(storage).await;
                }
            }
        }
    )+};
}

on_both_databases!(
    an_erased_delivery_keeps_what_accounting_needs,
    a_search_reads_the_tasks_of_all_stores_in_pages,
    a_delivery_is_past_retention_once_it_and_its_dropoff_are_old,
    a_delivery_that_was_rescheduled_or_changed_lately_is_not_past_retention,
    a_delivery_is_found_in_its_store,
    responses_to_its_own_notifications_are_erased,
    geocodes_stored_by_an_earlier_release_are_deleted,
);

fn hours(hours: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(hours)
}

/// Creates a store.
async fn create_store(storage: &Storage) -> StoreId {
    let store = fixture::store("Shop");
    let id = store.id;
    let insert =
        storage.write(move |transaction| async move { stores::insert(&transaction, &store).await });
    insert.await.unwrap();
    id
}

async fn insert(storage: &Storage, delivery: &Delivery) {
    storage
        .insert_delivery(fixture::new_delivery(delivery.clone()))
        .await
        .unwrap();
}

async fn erase_one(storage: &Storage, delivery: &Delivery) {
    let (store_id, id) = (delivery.store_id, delivery.id);
    let erased = storage
        .write(move |transaction| async move { erase(&transaction, store_id, id, hours(3)).await });
    erased.await.unwrap();
}

async fn an_erased_delivery_keeps_what_accounting_needs(storage: Arc<Storage>) {
    let store_id = create_store(&storage).await;
    let [delivery, other] = [(); 2].map(|()| fixture::delivery(store_id, NOW));
    for delivery in [&delivery, &other] {
        insert(&storage, delivery).await;
    }

    erase_one(&storage, &delivery).await;

    let mut expected = delivery.clone();
    expected.is_erased = true;
    let erased = |task: &mut Task, latitude| {
        task.address.street_address = "(erased)".to_owned();
        task.address.lat_lng = LatLng::new(latitude, 2.33).unwrap();
        task.address.place_name = None;
        task.address.contact_name = None;
        task.address.telephone = None;
        task.address.description = None;
        task.details.comments.clear();
        task.details.tags.clear();
        task.details.metadata.clear();
    };
    erased(&mut expected.pickup, 48.87);
    erased(&mut expected.dropoff, 48.86);
    let find = async |delivery: &Delivery| {
        let found = deliveries::find(storage.reader(), store_id, delivery.id).await;
        found.unwrap().unwrap()
    };
    assert_eq!(find(&delivery).await, expected);
    assert_eq!(find(&other).await, other);
    erase_one(&storage, &delivery).await;
    assert_eq!(find(&delivery).await, expected, "erased twice");
}

async fn a_delivery_that_was_rescheduled_or_changed_lately_is_not_past_retention(
    storage: Arc<Storage>,
) {
    let store_id = create_store(&storage).await;
    let delivery = fixture::delivery(store_id, NOW);
    insert(&storage, &delivery).await;
    let erase = async |ended, changed| {
        let (id, past) = (delivery.id, PastRetention { ended, changed });
        let erased = storage.write(move |transaction| async move {
            erase_past_retention(&transaction, store_id, id, past, hours(3)).await
        });
        erased.await.unwrap();
        let found = deliveries::find(storage.reader(), store_id, id).await;
        found.unwrap().unwrap()
    };

    // Its dropoff ends after two hours.
    assert_eq!(erase(hours(1), NOW).await, delivery);
    let before_its_creation = NOW - Duration::from_micros(1);
    assert_eq!(erase(hours(2), before_its_creation).await, delivery);
    let erased = erase(hours(2), NOW).await;
    assert!(erased.is_erased);
    assert_eq!(erased.dropoff.details.comments, "");
}

async fn a_search_reads_the_tasks_of_all_stores_in_pages(storage: Arc<Storage>) {
    let mut expected = Vec::new();
    for _ in 0..2 {
        let store_id = create_store(&storage).await;
        let mut delivery = fixture::delivery(store_id, NOW);
        delivery.pickup.address.telephone = None;
        insert(&storage, &delivery).await;
        expected.push((store_id, delivery.dropoff.id, delivery.id));
        delivery = fixture::delivery(store_id, NOW);
        delivery.dropoff.address.telephone = Some("+33612345679".to_owned());
        insert(&storage, &delivery).await;
        expected.push((store_id, delivery.pickup.id, delivery.id));
    }
    expected.sort();

    for limit in [1, 3, 4, 8, 9] {
        let mut found = Vec::new();
        let mut after = None;
        let mut pages = 0;
        loop {
            let page = search_telephone(storage.reader(), TELEPHONE, after, limit);
            let (tasks, last) = page.await.unwrap();
            pages += 1;
            found.extend(
                tasks.into_iter().map(|(position, delivery_id)| {
                    (position.store_id, position.task_id, delivery_id)
                }),
            );
            after = last;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{limit}");
        assert_eq!(pages, 8 / limit + 1, "{limit}");
    }
}

/// The dropoff of a fixture's delivery ends 2 hours after its creation.
async fn a_delivery_is_past_retention_once_it_and_its_dropoff_are_old(storage: Arc<Storage>) {
    let store_id = create_store(&storage).await;
    let mut backdated = fixture::delivery(store_id, hours(5));
    backdated.dropoff.window.before = hours(-10);
    let deliveries = [
        fixture::delivery(store_id, hours(1)),
        fixture::delivery(store_id, NOW),
        backdated,
    ];
    for delivery in &deliveries {
        insert(&storage, delivery).await;
    }
    let [second, first, backdated] = deliveries.map(|delivery| (store_id, delivery.id));
    let past_retention = async |ended, limit| {
        let past = PastRetention {
            ended,
            changed: hours(5),
        };
        let found = find_past_retention(storage.reader(), past, limit).await;
        found.unwrap()
    };

    assert_eq!(
        past_retention(hours(2) - Duration::from_micros(1), 9).await,
        []
    );
    assert_eq!(past_retention(hours(2), 9).await, [first]);
    assert_eq!(
        past_retention(hours(5), 9).await,
        [backdated, first, second]
    );
    assert_eq!(past_retention(hours(5), 1).await, [backdated]);
    let write = storage
        .write(move |transaction| async move { erase(&transaction, first.0, first.1, NOW).await });
    write.await.unwrap();
    assert_eq!(past_retention(hours(5), 9).await, [backdated, second]);
    let past = PastRetention {
        ended: hours(5),
        changed: hours(4),
    };
    let found = find_past_retention(storage.reader(), past, 9).await;
    assert_eq!(found.unwrap(), [second], "the other was changed later");
}

async fn a_delivery_is_found_in_its_store(storage: Arc<Storage>) {
    create_store(&storage).await;
    let store_id = create_store(&storage).await;
    let delivery = fixture::delivery(store_id, NOW);
    insert(&storage, &delivery).await;

    let find = async |id| deliveries::find_store(storage.reader(), id).await.unwrap();
    assert_eq!(find(delivery.id).await, Some(store_id));
    assert_eq!(find(DeliveryId::new()).await, None);
}

async fn responses_to_its_own_notifications_are_erased(storage: Arc<Storage>) {
    let [store_id, other_store] = [(); 2].map(|()| StoreId::new());
    let [delivery_id, other_delivery] = [(); 2].map(|()| DeliveryId::new());
    let rows = [
        (store_id, delivery_id),
        (store_id, other_delivery),
        (other_store, delivery_id),
    ];
    let notifications = rows.map(|row| (row, NotificationId::new()));
    let write = storage.write(move |transaction| async move {
        for ((store_id, delivery_id), id) in notifications {
            let row = notification::ActiveModel {
                store_id: Set(store_id.0),
                id: Set(id.0),
                event_id: Set(Uuid::now_v7()),
                webhook_id: Set(WebhookId::new().0),
                event: Set("delivery.completed".to_owned()),
                delivery_id: Set(delivery_id.0),
                state: Set("pending".to_owned()),
                attempts: Set(1),
                attempts_at_resend: Set(0),
                due_at: Set(NOW.into()),
                lease_token: Set(None),
                lease_expires_at: Set(None),
                created_at: Set(NOW.into()),
                finished_at: Set(None),
                traceparent: Set(None),
            };
            notification::Entity::insert(row)
                .exec_without_returning(&transaction)
                .await?;
            let report = AttemptReport {
                lease: Lease {
                    id,
                    token: Uuid::nil(),
                },
                outcome: Outcome::Failed {
                    failure: Failure::Status,
                    status: Some(500),
                    retry_after: None,
                },
                status: Some(500),
                duration: Duration::ZERO,
                response_body: "for Zoé".to_owned(),
                jitter: 0,
            };
            let attempt = RecordedAttempt {
                store_id,
                number: 1,
                recorded_at: NOW,
                report,
            };
            insert_attempts(&transaction, &[attempt]).await?;
        }
        erase_response_bodies(&transaction, store_id, delivery_id).await
    });
    write.await.unwrap();

    let mut bodies = Vec::new();
    for ((store_id, _), id) in notifications {
        let attempt = attempt::Entity::find_by_id((store_id.0, id.0, 1));
        let attempt = attempt.one(storage.reader()).await.unwrap();
        bodies.push(attempt.unwrap().response_body);
    }
    assert_eq!(bodies, ["", "for Zoé", "for Zoé"]);
}

async fn geocodes_stored_by_an_earlier_release_are_deleted(storage: Arc<Storage>) {
    let insert = "INSERT INTO geocodes (key, place, expires_at) VALUES ($1, NULL, 1)";
    let write = storage.write(move |transaction| async move {
        for key in 1..=3_u8 {
            rows::run(&transaction, insert, [vec![key].into()]).await?;
        }
        let deleted = delete_geocodes(&transaction, 2).await?;
        Ok::<_, Error>([deleted, delete_geocodes(&transaction, 2).await?])
    });
    assert_eq!(write.await.unwrap(), [2, 1]);

    let count = "SELECT COUNT(*) FROM geocodes";
    let count: Option<i64> = rows::find_value(storage.reader(), count, []).await.unwrap();
    assert_eq!(count, Some(0));
}

#[tokio::test]
async fn no_file_of_sqlite_keeps_what_is_erased() {
    let (directory, storage) = fixture::sqlite().await;
    let store_id = create_store(&storage).await;
    let mut delivery = fixture::delivery(store_id, NOW);
    let mark = "Xyzzy";
    // On overflow pages, which become free.
    delivery.pickup.details.comments = mark.repeat(2000);
    insert(&storage, &delivery).await;
    let is_stored = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        entries.flatten().any(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        })
    };
    assert!(is_stored());

    erase_one(&storage, &delivery).await;
    storage.truncate_write_ahead_log().await.unwrap();

    assert!(!is_stored());
}

/// The reader, such as a backup, keeps the log from being truncated for longer than a write waits.
#[tokio::test]
async fn a_log_that_is_being_read_is_reported_as_not_truncated() {
    let (directory, storage) = fixture::sqlite().await;
    create_store(&storage).await;
    let url = fixture::url(&directory);
    let other = Database::connect(&url).await.unwrap();
    let reading = other.begin().await.unwrap();
    reading
        .query_one_raw(Statement::from_string(
            DbBackend::Sqlite,
            "SELECT count(*) FROM stores",
        ))
        .await
        .unwrap();

    let result = storage.truncate_write_ahead_log().await;

    assert!(matches!(result, Err(Error::LogNotTruncated)), "{result:?}");
    reading.rollback().await.unwrap();
    storage.truncate_write_ahead_log().await.unwrap();
}
