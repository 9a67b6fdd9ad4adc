use std::sync::Arc;

use domain::{delivery::Delivery, id::StoreId};
use jiff::SignedDuration;
use sea_orm::Value;

use super::*;
use crate::{Storage, fixture, personal_data};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn hours(hours: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(hours)
}

async fn execute(storage: &Storage, statement: &'static str, ids: Vec<Uuid>) {
    let values = move || ids.clone().into_iter().map(Value::from);
    let write = storage.write(move |transaction| {
        let values = values.clone();
        async move { rows::run(&transaction, statement, values()).await }
    });
    write.await.unwrap();
}

/// Inserts a delivery, with a row in each table that names it or a task of it, and erases it.
async fn insert(storage: &Storage, delivery: &Delivery, is_erased: bool) {
    let (store, id, task) = (delivery.store_id.0, delivery.id.0, delivery.dropoff.id.0);
    let new = fixture::new_delivery(delivery.clone());
    storage.insert_delivery(new).await.unwrap();
    let history = "INSERT INTO task_events
            (store_id, task_id, created_at, transition, actor, api_client_id, occurred_at, is_clamped)
        VALUES ($1, $2, 1, 'done', 'courier', $1, 1, FALSE)";
    execute(storage, history, vec![store, task]).await;
    let incident =
        "INSERT INTO incidents (store_id, id, delivery_id, task_id, metadata, actor, api_client_id,
            created_at, occurred_at, is_clamped)
        VALUES ($1, $2, $3, $2, '{}', 'courier', $1, 1, 1, FALSE)";
    execute(storage, incident, vec![store, task, id]).await;
    let quote = "INSERT INTO retail_price_uses (store_id, retail_price_id, delivery_id, used_at)
        VALUES ($1, $2, $2, 1)";
    execute(storage, quote, vec![store, id]).await;
    for (notification, finished) in [(id, true), (task, false)] {
        let insert =
            "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
                state, attempts, due_at, created_at, finished_at)
            VALUES ($1, $2, $1, $1, 'delivery.completed', $3, 'exhausted', 1, 1, 1, 1)";
        execute(storage, insert, vec![store, notification, id]).await;
        if !finished {
            let pending = "UPDATE notifications SET state = 'pending', finished_at = NULL
                WHERE store_id = $1 AND id = $2";
            execute(storage, pending, vec![store, notification]).await;
        }
        let attempt = "INSERT INTO attempts
                (store_id, notification_id, number, duration, response_body, recorded_at)
            VALUES ($1, $2, 1, 1, '', 1)";
        execute(storage, attempt, vec![store, notification]).await;
    }
    if is_erased {
        let (store_id, id) = (delivery.store_id, delivery.id);
        let erased = storage.write(move |transaction| async move {
            personal_data::erase(&transaction, store_id, id, NOW).await
        });
        erased.await.unwrap();
    }
}

const TABLES: [&str; 7] = [
    "deliveries",
    "tasks",
    "task_events",
    "incidents",
    "retail_price_uses",
    "notifications",
    "attempts",
];

/// The numbers of rows of a store.
async fn counts(storage: &Storage, store_id: StoreId) -> [i64; TABLES.len()] {
    let mut counts = [0; TABLES.len()];
    for (count, table) in counts.iter_mut().zip(TABLES) {
        let select = format!("SELECT COUNT(*) FROM {table} WHERE store_id = $1");
        let found = rows::find_value(storage.reader(), &select, [store_id.0.into()]);
        *count = found.await.unwrap().unwrap();
    }
    counts
}

async fn remove(storage: &Storage, ended: Timestamp, limit: u64) -> bool {
    let past = PastRetention {
        ended,
        changed: hours(0),
    };
    let removed = storage
        .write(move |transaction| async move { remove_erased(&transaction, past, limit).await });
    removed.await.unwrap()
}

#[tokio::test]
async fn a_delivery_of_which_a_task_has_changed_lately_is_not_removed() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let [mut changed, unchanged] = [(); 2].map(|()| fixture::delivery(StoreId::new(), NOW));
        changed.dropoff.updated_at = NOW + SignedDuration::from_micros(1);
        for delivery in [&changed, &unchanged] {
            insert(&storage, delivery, true).await;
        }

        assert!(remove(&storage, hours(9), 1).await, "the batch is full");
        assert!(!remove(&storage, hours(9), 1).await);

        assert_eq!(counts(&storage, changed.store_id).await[0], 1);
        assert_eq!(counts(&storage, unchanged.store_id).await[0], 0);
    }
}

/// The dropoff of a fixture's delivery ends 2 hours after its creation.
#[tokio::test]
async fn an_erased_delivery_is_removed_with_what_names_it_once_it_and_its_dropoff_are_old() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let stores = [(); 4].map(|()| StoreId::new());
        let [old, young, mut backdated, not_erased] =
            stores.map(|store_id| fixture::delivery(store_id, NOW));
        let young = Delivery {
            created_at: hours(1),
            dropoff: domain::task::Task {
                window: domain::task::TimeWindow {
                    after: hours(1),
                    before: hours(3),
                },
                ..young.dropoff
            },
            ..young
        };
        backdated.created_at = hours(3);
        for delivery in [&old, &young, &backdated] {
            insert(&storage, delivery, true).await;
        }
        insert(&storage, &not_erased, false).await;
        let all = [1, 2, 1, 1, 1, 2, 2];
        assert_eq!(counts(&storage, stores[0]).await, all);

        let microsecond = SignedDuration::from_micros(1);
        assert!(!remove(&storage, hours(2) - microsecond, 9).await);
        assert_eq!(counts(&storage, stores[0]).await, all);
        assert!(!remove(&storage, hours(3) - microsecond, 9).await);

        // The unfinished notification and its attempt are removed after it has finished.
        assert_eq!(counts(&storage, stores[0]).await, [0, 0, 0, 0, 0, 1, 1]);
        for store_id in &stores[1..] {
            assert_eq!(counts(&storage, *store_id).await, all);
        }
        assert!(remove(&storage, hours(3), 1).await, "the batch is full");
        assert!(remove(&storage, hours(3), 1).await);
        assert!(!remove(&storage, hours(3), 1).await);
        assert_eq!(counts(&storage, stores[3]).await, all);
    }
}

#[tokio::test]
async fn a_delivery_with_many_notifications_is_removed_after_them() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let delivery = fixture::delivery(StoreId::new(), NOW);
        insert(&storage, &delivery, true).await;
        let ids =
            "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
                state, attempts, due_at, created_at, finished_at)
            VALUES ($1, $2, $1, $1, 'delivery.completed', $3, 'delivered', 1, 1, 1, 1)";
        for _ in 0..NOTIFICATIONS {
            let (store, id) = (delivery.store_id.0, delivery.id.0);
            execute(&storage, ids, vec![store, Uuid::now_v7(), id]).await;
        }
        let rest = |notifications, attempts| [1, 2, 1, 1, 1, notifications, attempts];
        let before = counts(&storage, delivery.store_id).await;
        assert_eq!(before, rest(502, 2));

        assert!(remove(&storage, hours(2), 9).await);
        let [deliveries, .., notifications, _] = counts(&storage, delivery.store_id).await;
        assert_eq!((deliveries, notifications), (1, 2));

        assert!(!remove(&storage, hours(2), 9).await);
        let left = counts(&storage, delivery.store_id).await;
        assert_eq!(left, [0, 0, 0, 0, 0, 1, 1]);
    }
}

/// A courier completes it while it is removed.
#[tokio::test]
async fn a_delivery_that_another_transaction_has_locked_is_removed_later() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let delivery = fixture::delivery(StoreId::new(), NOW);
    insert(&storage, &delivery, true).await;
    let other = Arc::clone(&storage);
    let (store_id, id) = (delivery.store_id, delivery.id);
    let locked = storage.write(move |transaction| {
        let other = Arc::clone(&other);
        async move {
            crate::deliveries::find_and_lock(&transaction, store_id, id).await?;
            assert!(!remove(&other, hours(2), 9).await);
            Ok::<_, Error>(())
        }
    });
    locked.await.unwrap();
    assert_eq!(counts(&storage, store_id).await[0], 1);

    assert!(!remove(&storage, hours(2), 9).await);

    assert_eq!(counts(&storage, store_id).await[0], 0);
}

/// Deliveries of three stores, half of them erased, with all that names them.
const FILL: &str = "
    CREATE TEMPORARY TABLE filled AS
        SELECT n, md5((n % 3)::text)::uuid AS store, md5('d' || n)::uuid AS delivery
        FROM generate_series(1, 20000) AS n;
    INSERT INTO deliveries (store_id, id, distance_meters, duration_seconds, distance_source,
            dropoff_before, created_at, erased_at)
        SELECT store, delivery, 1, 1, 'osrm', n, n, CASE WHEN n % 2 = 0 THEN n END FROM filled;
    INSERT INTO tasks (store_id, id, delivery_id, kind, address, after, before, time_slot, comments,
            packages, tags, metadata, created_at, updated_at)
        SELECT store, md5(kind || n)::uuid, delivery, kind, '{}', 0, n, false, '', '[]', '[]', '{}', n, n
        FROM filled, (VALUES ('pickup'), ('dropoff')) AS kinds (kind);
    INSERT INTO task_events
            (store_id, task_id, created_at, transition, actor, api_client_id, occurred_at, is_clamped)
        SELECT store_id, id, number, 'done', 'courier', store_id, 1, false
        FROM tasks, generate_series(1, 2) AS number;
    INSERT INTO incidents (store_id, id, delivery_id, task_id, metadata, actor, api_client_id,
            created_at, occurred_at, is_clamped)
        SELECT store_id, id, delivery_id, id, '{}', 'courier', store_id, 1, 1, false FROM tasks;
    INSERT INTO retail_price_uses SELECT store, delivery, delivery, n FROM filled;
    INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id, state, attempts,
            due_at, created_at, finished_at)
        SELECT store_id, id, id, store_id, 'delivery.completed', delivery_id, 'delivered', 1, 1, 1, 1
        FROM tasks;
    INSERT INTO attempts (store_id, notification_id, number, duration, response_body, recorded_at)
        SELECT store_id, id, 1, 1, '', 1 FROM notifications;
    ANALYZE";

#[tokio::test]
async fn a_removal_reads_at_most_ten_rows_of_each_table_for_one_that_it_removes() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    storage.reader().execute_unprepared(FILL).await.unwrap();
    let measured = storage.write(|transaction| async move {
        // Which PostgreSQL prefers to some hundred look-ups only while a table has this few rows.
        let no_scans = "SET LOCAL enable_seqscan = off";
        transaction.execute_unprepared(no_scans).await?;
        let past = PastRetention {
            ended: Timestamp::from_microsecond(1000).unwrap(),
            changed: hours(1),
        };
        assert!(remove_erased(&transaction, past, 100).await?);
        let select = "SELECT relname::text, COALESCE(seq_tup_read + idx_tup_fetch, 0), n_tup_del
            FROM pg_stat_xact_user_tables WHERE n_tup_del > 0";
        let rows = rows::query(&transaction, select, []).await?;
        let rows = rows.iter().map(|row| {
            let numbers: [i64; 2] = [row.try_get_by_index(1)?, row.try_get_by_index(2)?];
            Ok::<_, Error>((row.try_get_by_index::<String>(0)?, numbers))
        });
        rows.collect::<Result<Vec<_>, _>>()
    });
    let measured = measured.await.unwrap();

    assert_eq!(measured.len(), TABLES.len(), "{measured:?}");
    for (table, [read, removed]) in measured {
        assert!(removed >= 100, "{table}: {removed}");
        assert!(read <= 10 * removed, "{table}: {read} for {removed}");
    }
}
