//! Group commit against a real database.

use std::{sync::Arc, time::Duration};

use domain::id::StoreId;
use futures_util::{FutureExt as _, future::join_all};
use jiff::Timestamp;
use process::metrics::Exposition;
use sea_orm::ConnectionTrait as _;
use tokio::sync::Semaphore;

use crate::{Error, Storage, WriteError, fixture};

/// An error type with errors of the work.
#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error("failed")]
    Failed,
    #[error(transparent)]
    Storage(#[from] Error),
}

impl WriteError for WorkError {
    fn as_storage(&self) -> Option<&Error> {
        match self {
            Self::Storage(error) => Some(error),
            Self::Failed => None,
        }
    }
}

/// Blocks the writer until a permit is added, so that the other writes share a commit.
async fn block_writer(storage: &Arc<Storage>) -> Arc<Semaphore> {
    let (started, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let semaphores = (Arc::clone(&started), Arc::clone(&release));
    let blocked = Arc::clone(storage);
    tokio::spawn(async move {
        blocked
            .write(move |_| async move {
                let (started, release) = semaphores.clone();

                started.add_permits(1);
                let _permit = release.acquire().await;
                Ok::<_, Error>(())
            })
            .await
    });
    let _started = started.acquire().await.unwrap();
    release
}

async fn add_store(storage: &Storage, name: &str) -> Result<(), Error> {
    let store = fixture::store(name);
    storage
        .write(move |transaction| async move { crate::stores::insert(&transaction, &store).await })
        .await
}

async fn names(storage: &Storage) -> Vec<String> {
    let mut names: Vec<_> = crate::stores::list(storage.reader())
        .await
        .unwrap()
        .into_iter()
        .map(|store| store.display_name)
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn writes_that_share_a_commit_are_all_stored() {
    let (_directory, storage) = fixture::sqlite().await;
    let release = block_writer(&storage).await;

    let expected: Vec<_> = (10..74).map(|number| number.to_string()).collect();
    let writes = join_all(expected.iter().map(|name| add_store(&storage, name)));
    let (results, ()) = tokio::join!(writes, async { release.add_permits(1) });

    assert!(results.iter().all(Result::is_ok));
    assert_eq!(names(&storage).await, expected);
    // The write that blocked the writer has a commit of its own.
    let mut exposition = Exposition::new();
    storage.register_metrics(exposition.registry());
    let rendered = exposition.render().await;
    for line in [
        "delivery_group_commit_writes_count 2\n",
        "delivery_group_commit_writes_sum 65.0\n",
    ] {
        assert!(rendered.contains(line), "{line}{rendered}");
    }
}

#[tokio::test]
async fn a_delivery_that_exists_fails_alone() {
    let (_directory, storage) = fixture::sqlite().await;
    let store = StoreId::new();
    let [first, twice, last] = [(); 3].map(|()| fixture::delivery(store, Timestamp::UNIX_EPOCH));
    let release = block_writer(&storage).await;

    let new = [&first, &twice, &twice, &last].map(|new| fixture::new_delivery(new.clone()));
    let insertions = join_all(new.map(|new| storage.insert_delivery(new)));
    let (results, ()) = tokio::join!(insertions, async { release.add_permits(1) });

    let is_inserted: Vec<_> = results.iter().map(Result::is_ok).collect();
    assert_eq!(is_inserted, [true, true, false, true]);
    assert!(results[2].as_ref().unwrap_err().is_unique_violation());
    for delivery in [first, twice, last] {
        let found = crate::deliveries::find(storage.reader(), store, delivery.id);
        assert_eq!(found.await.unwrap(), Some(delivery));
    }
}

#[tokio::test]
async fn a_failed_write_is_rolled_back_alone() {
    let (_directory, storage) = fixture::sqlite().await;
    let release = block_writer(&storage).await;

    let failing = storage.write(move |transaction| async move {
        let store = fixture::store("failed");
        crate::stores::insert(&transaction, &store).await?;
        Err::<(), _>(WorkError::Failed)
    });
    let (before, failed, after, ()) = tokio::join!(
        add_store(&storage, "before"),
        failing,
        add_store(&storage, "after"),
        async { release.add_permits(1) }
    );

    assert!(before.is_ok() && after.is_ok());
    assert!(matches!(failed, Err(WorkError::Failed)));
    assert_eq!(names(&storage).await, ["after", "before"]);
}

/// The writes of a client that sends what exists already must not each cost the others a flush.
#[tokio::test]
async fn a_write_of_a_row_that_exists_fails_alone_and_the_others_share_a_commit() {
    let (_directory, storage) = fixture::sqlite().await;
    let release = block_writer(&storage).await;

    let existing = storage.write(move |transaction| async move {
        let store = fixture::store("twice");
        crate::stores::insert(&transaction, &store).await?;
        crate::stores::insert(&transaction, &store).await
    });
    let (before, existing, after, ()) = tokio::join!(
        add_store(&storage, "before"),
        existing,
        add_store(&storage, "after"),
        async { release.add_permits(1) }
    );

    assert!(before.is_ok() && after.is_ok());
    assert!(existing.unwrap_err().is_unique_violation());
    assert_eq!(names(&storage).await, ["after", "before"]);
    let mut exposition = Exposition::new();
    storage.register_metrics(exposition.registry());
    let rendered = exposition.render().await;
    // The write that blocked the writer has a commit of its own.
    let commits = "delivery_group_commit_writes_count 2\n";
    assert!(rendered.contains(commits), "{rendered}");
}

#[tokio::test]
async fn a_write_that_breaks_the_transaction_fails_alone() {
    let (_directory, storage) = fixture::sqlite().await;
    let release = block_writer(&storage).await;

    let broken = storage.write(move |transaction| async move {
        // Ends the shared transaction.
        let ended = transaction.execute_unprepared("ROLLBACK").await;
        ended.map_err(Error::from)?;
        let invalid = transaction.execute_unprepared("invalid").await;
        invalid.map_err(Error::from)?;
        Ok(())
    });
    let panicking = storage.write::<(), _>(|_| async { panic!("a bug") });
    let (before, broken, panicked, after, ()) = tokio::join!(
        add_store(&storage, "before"),
        broken,
        panicking,
        add_store(&storage, "after"),
        async { release.add_permits(1) }
    );

    assert!(before.is_ok() && after.is_ok());
    assert!(matches!(broken, Err(Error::Database(_))));
    assert!(matches!(panicked, Err(Error::Panicked(message)) if message == "a bug"));
    assert_eq!(names(&storage).await, ["after", "before"]);
    assert!(add_store(&storage, "later").await.is_ok());
}

#[tokio::test]
async fn a_blocked_writer_rejects_new_writes_and_skips_those_that_timed_out() {
    let (_directory, storage) = fixture::sqlite_with_write_timeout(Duration::from_millis(20)).await;
    let release = block_writer(&storage).await;
    let is_timeout = |result| matches!(result, Err::<(), _>(Error::Timeout));

    assert!(is_timeout(add_store(&storage, "timed out").await));
    // Rejected without waiting for the timeout.
    let rejected = add_store(&storage, "rejected").now_or_never();
    assert!(rejected.is_some_and(is_timeout));
    assert_not_writable(&storage, "the database did not respond in time").await;

    release.add_permits(1);
    while is_timeout(add_store(&storage, "later").await) {
        tokio::task::yield_now().await;
    }
    let mut written = names(&storage).await;
    // On a busy host, an attempt that timed out may have been committed.
    written.dedup();
    assert_eq!(written, ["later"]);
    storage.health_check().run().await.unwrap();
}

async fn assert_not_writable(storage: &Storage, cause: &str) {
    let result = storage.health_check().run().await;
    let message = format!("the database accepts no writes: {cause}");
    assert!(
        matches!(&result, Err(Error::Misconfigured(reason)) if *reason == message),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_database_that_cannot_be_written_fails_the_health_check_until_a_write_succeeds() {
    let (directory, storage) = fixture::sqlite().await;
    let health = storage.health_check();
    // Opens the connection that reads.
    health.run().await.unwrap();
    let file = directory.path().join("delivery.sqlite");
    let moved = directory.path().join("moved");
    std::fs::rename(&file, &moved).unwrap();
    std::fs::create_dir(&file).unwrap();
    health.run().await.unwrap();

    // SQLite's own limit fails one connection; the writer cannot open another one.
    let full = storage.write(move |transaction| async move {
        let filler = "PRAGMA max_page_count = 1; CREATE TABLE filler (x); \
                          INSERT INTO filler VALUES (zeroblob(100000))";
        transaction.execute_unprepared(filler).await?;
        Ok::<_, Error>(())
    });
    let full = full.await.unwrap_err();
    assert!(full.is_unwritable(), "{full:?}");
    // After the failure of a write, before that of a connection.
    health.run().await.unwrap_err();
    let failed = add_store(&storage, "failed").await.unwrap_err();
    assert!(failed.is_unwritable(), "{failed:?}");
    let reason = "the database accepts no writes: ";
    let error = health.run().await.unwrap_err().to_string();
    assert!(error.starts_with(reason), "{error}");
    assert!(error.contains("code: 14"), "{error}");

    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&moved, &file).unwrap();
    health.run().await.unwrap();
    add_store(&storage, "later").await.unwrap();
    assert_eq!(names(&storage).await, ["later"]);
    // The check has removed the table of its test write.
    let table = "SELECT 1 FROM write_trial";
    assert!(storage.reader().execute_unprepared(table).await.is_err());
}

#[tokio::test]
async fn a_database_that_becomes_read_only_fails_the_health_check_until_it_is_writable() {
    let (directory, storage) = fixture::sqlite().await;
    let health = storage.health_check();
    add_store(&storage, "before").await.unwrap();
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    storage
        .reader()
        .execute_unprepared(checkpoint)
        .await
        .unwrap();
    // Fails the writer's connection; the next one reads the header of the file.
    let fail = || {
        storage.write(move |transaction| async move {
            let statements = "PRAGMA query_only = 1; CREATE TABLE refused (x)";
            transaction.execute_unprepared(statements).await?;
            Ok::<_, Error>(())
        })
    };
    let set_write_version = |version| {
        use std::os::unix::fs::FileExt as _;
        let mut file = std::fs::File::options();
        let file = file
            .write(true)
            .open(directory.path().join("delivery.sqlite"));
        // SQLite's file format, section 1.3.3: a larger version than 2 is read-only.
        file.unwrap().write_all_at(&[version], 18).unwrap();
    };

    set_write_version(3);
    assert!(fail().await.unwrap_err().is_read_only());
    let failed = add_store(&storage, "failed").await.unwrap_err();
    assert!(
        failed.is_read_only() && failed.is_unwritable(),
        "{failed:?}"
    );
    let error = health.run().await.unwrap_err().to_string();
    let reason = "the database accepts no writes: ";
    assert!(
        error.starts_with(reason) && error.contains("code: 8"),
        "{error}"
    );

    set_write_version(2);
    health.run().await.unwrap();
    add_store(&storage, "later").await.unwrap();
    assert_eq!(names(&storage).await, ["before", "later"]);
}

#[tokio::test]
async fn a_write_that_was_queued_is_stored_after_reopening() {
    let (directory, storage) = fixture::sqlite().await;
    let release = block_writer(&storage).await;
    let shared = Arc::clone(&storage);
    let write = tokio::spawn(async move { add_store(&shared, "queued").await });
    tokio::task::yield_now().await;

    release.add_permits(1);
    write.await.unwrap().unwrap();
    Arc::into_inner(storage).unwrap().close().await.unwrap();

    let reopened = fixture::open(&directory).await;
    assert_eq!(names(&reopened).await, ["queued"]);
}
