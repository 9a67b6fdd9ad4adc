use std::collections::BTreeSet;

use domain::{
    api_client::{ApiClient, Scopes, TaskStatus},
    api_secrets::{ApiSecrets, SecretHash},
    delivery::Delivery,
    id::{ApiClientId, StoreId, TaskId},
    store::Store,
    task::Task,
};
use futures_util::{FutureExt as _, future::join_all};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait as _, DbBackend};
use tokio::time::timeout;
use uuid::Uuid;

use super::{MAX_DURATION, MAX_KEYS, SharedReads, SharedRow, statement};
use crate::{
    Error, Session, Storage,
    fixture::{self, statements, wait_for_locks},
    rows, tasks,
};

/// Stored deliveries of a store.
async fn deliveries(storage: &Storage, store_id: StoreId, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        let delivery = fixture::delivery(store_id, Timestamp::UNIX_EPOCH);
        let new = fixture::new_delivery(delivery.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
        deliveries.push(delivery);
    }
    deliveries
}

/// Reads values at the same time.
async fn read<T: SharedRow>(
    reads: &SharedReads<T>,
    keys: &[T::Key],
) -> Vec<Result<Option<T>, Error>> {
    join_all(keys.iter().map(|key| reads.find(key.clone()))).await
}

/// Reads values by as few statements as their keys need, and compares their texts.
async fn assert_found<T: SharedRow>(
    storage: &Storage,
    reads: &SharedReads<T>,
    expected: Vec<(T::Key, Option<T>)>,
) {
    let distinct: BTreeSet<_> = expected.iter().map(|(key, _)| key.clone()).collect();
    let before = statements(storage, "SELECT").await;
    let (keys, expected): (Vec<_>, Vec<_>) = expected.into_iter().unzip();

    let found = read(reads, &keys).await;

    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    let count = distinct.len().div_ceil(MAX_KEYS);
    assert_eq!(statements(storage, "SELECT").await - before, count);
}

#[tokio::test]
async fn reads_that_arrive_together_share_statements_and_each_gets_its_own_row() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let stores = ["A", "B"].map(fixture::store);
        let (mut tasks, mut of_any_store, mut clients) = (vec![], vec![], vec![]);
        for store in &stores {
            crate::stores::insert(storage.reader(), store)
                .await
                .unwrap();
            for delivery in deliveries(&storage, store.id, MAX_KEYS / 4).await {
                for task in [delivery.pickup, delivery.dropoff] {
                    tasks.push(((store.id.0, task.id.0), Some(task.clone())));
                    of_any_store.push((task.id.0, Some((store.clone(), task))));
                }
            }
            let client = client(store);
            crate::api_clients::insert(storage.reader(), &client)
                .await
                .unwrap();
            clients.push((client.api_key.clone(), Some(client)));
        }
        // Each several times, a task of another store, and keys that do not exist.
        let of_other_store = (stores[1].id.0, tasks[0].0.1);
        let mut tasks = [tasks.clone(), tasks].concat();
        let mut of_any_store = [of_any_store.clone(), of_any_store].concat();
        let mut clients = vec![clients; 16].concat();
        tasks.extend([
            (of_other_store, None),
            ((stores[0].id.0, Uuid::now_v7()), None),
        ]);
        of_any_store.push((Uuid::now_v7(), None));
        clients.push(("unknown".to_owned(), None));

        let of_clients = stores.iter().map(|store| (store.id.0, Some(store.clone())));
        let of_clients = [of_clients.collect(), vec![(Uuid::now_v7(), None); 2]].concat();

        assert_found(&storage, &storage.stores, of_clients).await;
        assert_found(&storage, &storage.tasks, tasks).await;
        assert_found(&storage, &storage.tasks_of_any_store, of_any_store).await;
        assert_found(&storage, &storage.api_clients, clients).await;
    }
}

fn client(store: &Store) -> ApiClient {
    ApiClient {
        id: ApiClientId::new(),
        store_id: Some(store.id),
        courier_id: None,
        display_name: "Shop".to_owned(),
        api_key: format!("key-{}", store.display_name),
        secrets: ApiSecrets::new(SecretHash::of("secret")),
        scopes: Scopes::parse("deliveries tasks").unwrap(),
        task_status: TaskStatus::Specified,
        default_address: None,
        created_at: Timestamp::UNIX_EPOCH,
        disabled_at: None,
    }
}

#[tokio::test]
async fn a_row_that_is_not_valid_fails_its_reads_alone() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let store = StoreId::new();
        let stored = deliveries(&storage, store, 4).await;
        let tasks: Vec<_> = stored
            .into_iter()
            .map(|delivery| delivery.dropoff)
            .collect();
        let update = "UPDATE tasks SET kind = 'return' WHERE id = $1";
        let updated = rows::execute(storage.reader(), update, [tasks[2].id.0.into()]);
        assert_eq!(updated.await.unwrap(), 1);
        let mut keys: Vec<_> = tasks.iter().map(|task| (store.0, task.id.0)).collect();
        keys.push(keys[2]);

        let found = read(&storage.tasks, &keys).await;

        let found = found
            .into_iter()
            .map(|found| found.map_err(|error| error.to_string()));
        let message = "tasks has an inconsistent row: \
            there is no kind \"return\"; the kinds are pickup, dropoff";
        let error = Err(message.to_owned());
        let mut expected: Vec<_> = tasks.into_iter().map(|task| Ok(Some(task))).collect();
        expected[2] = error.clone();
        expected.push(error);
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn the_end_of_all_connections_fails_every_read() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        storage.reader().clone().close().await;
        let keys = [(); 5].map(|()| (Uuid::now_v7(), Uuid::now_v7()));

        let found = read(&storage.tasks, &keys).await;

        assert_eq!(found.len(), 5);
        for found in found {
            assert!(matches!(found, Err(Error::Unavailable(_))), "{found:?}");
        }
    }
}

#[tokio::test]
async fn callers_that_have_gone_are_not_read_for_and_keep_no_one_from_reading() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let stored = deliveries(&storage, StoreId::new(), 1).await.remove(0);
        let before = statements(&storage, "SELECT").await;
        let find = |id| Box::pin(tasks::find(&storage, stored.store_id, id));
        let mut first = find(TaskId::new());
        let mut abandoned: Vec<_> = (0..3 * MAX_KEYS).map(|_| find(TaskId::new())).collect();
        let mut last = find(stored.pickup.id);
        for read in [&mut first]
            .into_iter()
            .chain(&mut abandoned)
            .chain([&mut last])
        {
            assert!(read.now_or_never().is_none());
        }

        drop(abandoned);
        drop(first);

        assert_eq!(last.await.unwrap().as_ref(), Some(&stored.pickup));
        assert_eq!(statements(&storage, "SELECT").await - before, 1);
    }
}

/// Such as those that a restart of the server has ended.
#[tokio::test]
async fn a_lost_connection_fails_no_more_than_one_read() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let storage = Storage::connect(&url, 3).await.unwrap();
    let stored = deliveries(&storage, StoreId::new(), 4).await;
    let keys = stored.iter().flat_map(|delivery| {
        [&delivery.pickup, &delivery.dropoff].map(|task| (delivery.store_id.0, task.id.0))
    });
    let keys: Vec<_> = keys.collect();
    let mut transactions = Vec::new();
    for _ in 0..3 {
        transactions.push(storage.reader().begin().await.unwrap());
    }
    for (transaction, checkout) in transactions {
        checkout.end(transaction, false).await.unwrap();
    }
    let other = Storage::connect(&url, 1).await.unwrap();
    let terminate = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let terminated: i64 = rows::value(other.reader(), terminate).await.unwrap();
    assert_eq!(terminated, 3);

    let found = read(&storage.tasks, &keys).await;

    // One connection fails the shared statement, each of the others one read.
    let failed = found.iter().filter(|found| found.is_err()).count();
    assert_eq!((found.len(), failed), (8, 2));
}

/// The results of reads during which the table of tasks is locked until so many statements wait for it.
async fn while_locked<T>(storage: &Storage, count: i64, reads: impl Future<Output = T>) -> T {
    let (transaction, checkout) = storage.reader().begin().await.unwrap();
    let lock = "LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE";
    transaction.execute_unprepared(lock).await.unwrap();
    let release = async {
        wait_for_locks(storage, count).await;
        checkout.end(transaction, false).await.unwrap();
    };
    tokio::join!(reads, release).0
}

#[tokio::test]
async fn a_read_does_not_wait_for_the_statements_of_others() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let storage = &storage;
    // Each begins when the statements of those before wait.
    let reads = join_all((0..3).map(async |number| {
        wait_for_locks(storage, number).await;
        tasks::find(storage, StoreId::new(), TaskId::new()).await
    }));

    let found = while_locked(storage, 3, reads).await;

    assert!(
        found.iter().all(|found| matches!(found, Ok(None))),
        "{found:?}"
    );
}

/// Its connection may be lost.
#[tokio::test]
async fn reads_whose_statement_hangs_are_repeated_alone() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let stored = deliveries(&storage, StoreId::new(), 2).await;
    let keys = stored.iter().flat_map(|delivery| {
        [&delivery.pickup, &delivery.dropoff].map(|task| (delivery.store_id.0, task.id.0))
    });
    let keys: Vec<_> = keys.collect();

    let found = while_locked(&storage, 4, read(&storage.tasks, &keys));
    // Before the timeout of the statement that hangs.
    let found = timeout(5 * MAX_DURATION, found).await.unwrap();

    let found: Vec<_> = found
        .into_iter()
        .map(|found| found.unwrap().unwrap().id.0)
        .collect();
    let expected: Vec<_> = keys.into_iter().map(|(_, id)| id).collect();
    assert_eq!(found, expected);
}

/// The plan of the statement that reads so many keys.
async fn plan<T: SharedRow>(session: &Session, keys: usize, key: T::Key) -> String {
    let backend = session.get_database_backend();
    let (explain, column) = match backend {
        DbBackend::Sqlite => ("EXPLAIN QUERY PLAN", 3),
        _ => ("EXPLAIN", 0),
    };
    let sql = format!("{explain} {}", statement::<T>(backend, keys));
    let values = (0..keys).flat_map(|_| T::values(&key));
    let rows = rows::query(session, &sql, values).await.unwrap();
    let lines = rows.iter().map(|row| row.try_get_by_index(column).unwrap());
    lines.collect::<Vec<String>>().join("\n")
}

/// Also before the table is analysed: `PostgreSQL` may keep the plan.
#[tokio::test]
async fn a_statement_finds_each_key_by_a_unique_index() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let (session, _checkout) = storage.reader().begin().await.unwrap();
        let id = Uuid::now_v7();
        let plans = [
            plan::<Task>(&session, MAX_KEYS, (id, id)).await,
            plan::<(Store, Task)>(&session, MAX_KEYS, id).await,
            plan::<ApiClient>(&session, MAX_KEYS, "key".to_owned()).await,
        ];
        let conditions = match session.get_database_backend() {
            DbBackend::Sqlite => ["(store_id=? AND id=?)", "(id=?)", "(api_key=?)"],
            _ => [
                "Index Cond: (id = ",
                "Index Cond: (id = ",
                "Index Cond: (api_key = ",
            ],
        };
        for (plan, condition) in plans.iter().zip(conditions) {
            assert!(plan.contains(condition), "{plan}");
        }
    }
}
