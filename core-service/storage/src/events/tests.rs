//! Numbers and positions, against a real database.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::Semaphore, task::JoinHandle};

use super::*;
use crate::{Storage, delivery_insertion::QUEUE_CREATION, fixture, task_changes};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Longer than any statement takes that does not wait for a lock.
const TIMEOUT: Duration = Duration::from_secs(5);

struct Log {
    _directory: Option<tempfile::TempDir>,
    storage: Arc<Storage>,
    stores: [StoreId; 2],
    /// How often a transaction that numbers was run.
    runs: Arc<AtomicUsize>,
}

impl Log {
    async fn open() -> Self {
        let (directory, storage) = fixture::sqlite().await;
        Self::with(Some(directory), storage)
    }

    /// A log with concurrent transactions; `None` without `PostgreSQL`.
    async fn on_postgres() -> Option<Self> {
        Some(Self::with(None, fixture::postgres().await?))
    }

    fn with(directory: Option<tempfile::TempDir>, storage: Arc<Storage>) -> Self {
        Self {
            _directory: directory,
            storage,
            stores: [StoreId::new(), StoreId::new()],
            runs: Arc::default(),
        }
    }

    /// Inserts an event of a store, created some hours after [`NOW`].
    async fn insert_event(&self, store: usize, hours: i64) -> EventId {
        let (store_id, id) = (self.stores[store], EventId::new());
        let now = NOW + SignedDuration::from_hours(hours);
        self.storage
            .write(move |transaction| async move {
                let object = Object::Delivery(DeliveryId(id.0));
                let event = NewEvent {
                    store_id,
                    id,
                    name: "delivery.picked",
                    object,
                };
                insert(&transaction, [event], now).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
        id
    }

    async fn assign_numbers(&self, limit: usize) -> Option<usize> {
        let runs = Arc::clone(&self.runs);
        self.storage
            .write(move |transaction| async move {
                runs.fetch_add(1, Ordering::SeqCst);
                assign_numbers(&transaction, limit, QueueHeads::BEGINNING).await
            })
            .await
            .unwrap()
    }

    /// Numbers events in a transaction that commits once the semaphore has a permit.
    async fn begin_numbering(&self) -> (Arc<Semaphore>, JoinHandle<Option<usize>>) {
        let (numbered, commit) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (storage, signals) = (
            Arc::clone(&self.storage),
            (Arc::clone(&numbered), Arc::clone(&commit)),
        );
        let transaction = tokio::spawn(async move {
            let written = storage.write(move |transaction| async move {
                let (numbered, commit) = signals.clone();
                let run = assign_numbers(&transaction, 10, QueueHeads::BEGINNING).await?;
                numbered.add_permits(1);
                let _permit = commit.acquire().await;
                Ok::<_, Error>(run)
            });
            written.await.unwrap()
        });
        let _numbered = numbered.acquire().await.unwrap();
        (commit, transaction)
    }

    async fn last_position(&self) -> usize {
        let bounds = bounds_of_all_stores(self.storage.reader()).await;
        usize::try_from(bounds.unwrap().last).unwrap()
    }

    async fn remove_oldest(&self, hours: i64) -> usize {
        let before = NOW + SignedDuration::from_hours(hours);
        self.storage
            .write(move |transaction| async move { remove_oldest(&transaction, before, 500).await })
            .await
            .unwrap()
    }

    async fn numbers(&self, store: usize) -> Vec<(EventId, i64)> {
        let events = list(self.storage.reader(), self.stores[store], 0, 1000).await;
        let number = |event: Event| (event.id, event.number);
        events.unwrap().into_iter().map(number).collect()
    }
}

#[tokio::test]
async fn numbers_count_from_one_per_store_and_positions_over_all_stores() {
    let log = Log::open().await;
    let (a, b) = (log.insert_event(0, 1).await, log.insert_event(1, 2).await);
    let c = log.insert_event(0, 3).await;

    assert_eq!(log.assign_numbers(2).await, Some(2));
    // Created before the others, committed after them.
    let late = log.insert_event(0, 0).await;
    assert_eq!(log.assign_numbers(10).await, Some(2));
    assert_eq!(log.assign_numbers(10).await, Some(0));

    assert_eq!(log.numbers(0).await, [(a, 1), (late, 2), (c, 3)]);
    assert_eq!(log.numbers(1).await, [(b, 1)]);
    for (store, last) in [(0, 3), (1, 1)] {
        let bounds = bounds(log.storage.reader(), log.stores[store]);
        assert_eq!(bounds.await.unwrap().last, last);
    }
    let all = list_of_all_stores(log.storage.reader(), 0, 10)
        .await
        .unwrap();
    let all: Vec<_> = all.iter().map(|event| (event.id, event.position)).collect();
    assert_eq!(all, [(a, 1), (b, 2), (late, 3), (c, 4)]);
    let mut heads = QueueHeads::BEGINNING;
    let waiting = waiting(log.storage.reader(), &mut heads, NOW).await;
    assert!(!waiting.unwrap().events);
}

#[tokio::test]
async fn numbering_continues_after_old_events_are_removed() {
    let log = Log::open().await;
    for hours in 0..4 {
        log.insert_event(0, hours).await;
    }
    log.insert_event(1, 10).await;
    log.assign_numbers(10).await;

    assert_eq!(log.remove_oldest(0).await, 0);
    assert_eq!(log.remove_oldest(3).await, 3);
    let newest = log.insert_event(0, 11).await;
    log.assign_numbers(10).await;

    let reader = log.storage.reader();
    let bounds = bounds(reader, log.stores[0]).await.unwrap();
    assert_eq!((bounds.first(), bounds.last), (4, 5));
    assert_eq!(log.numbers(0).await.last(), Some(&(newest, 5)));
    let other = super::bounds(reader, log.stores[1]).await.unwrap();
    assert_eq!((other.first(), other.last), (1, 1));
    let all = bounds_of_all_stores(reader).await.unwrap();
    assert_eq!((all.first(), all.last), (4, 6));
    assert_eq!(log.remove_oldest(100).await, 3);
    assert_eq!(log.numbers(0).await, []);
    log.insert_event(0, 200).await;
    log.assign_numbers(10).await;
    assert_eq!(log.numbers(0).await.len(), 1);
    let bounds = super::bounds(reader, log.stores[0]).await.unwrap();
    assert_eq!((bounds.first(), bounds.last), (6, 6), "numbering continues");
}

/// The other core skips the sequencer's locked row: it neither waits nor numbers the same events.
#[tokio::test]
async fn a_core_does_not_number_while_another_has_numbered_without_a_commit() {
    let Some(log) = Log::on_postgres().await else {
        return;
    };
    let (a, b) = (log.insert_event(0, 1).await, log.insert_event(0, 2).await);

    let (commit, numbering) = log.begin_numbering().await;
    let c = log.insert_event(0, 0).await;
    let skipped = tokio::time::timeout(TIMEOUT, log.assign_numbers(10)).await;
    commit.add_permits(1);
    let numbered = numbering.await.unwrap();

    assert_eq!(skipped.ok(), Some(None));
    assert_eq!(numbered, Some(2));
    let later = log.assign_numbers(10).await;
    assert_eq!(later, Some(1));
    assert_eq!(log.numbers(0).await, [(a, 1), (b, 2), (c, 3)]);
}

#[tokio::test]
async fn two_cores_that_number_at_the_same_time_leave_no_gap_and_number_nothing_twice() {
    const EVENTS: usize = 200;

    let Some(log) = Log::on_postgres().await else {
        return;
    };
    let calls = AtomicUsize::new(0);
    let core = async || {
        let mut total = 0;
        while log.last_position().await < 2 * EVENTS {
            calls.fetch_add(1, Ordering::SeqCst);
            total += log.assign_numbers(3).await.unwrap_or_default();
        }
        total
    };
    let insert = async |store| {
        for _ in 0..EVENTS {
            log.insert_event(store, 0).await;
        }
    };

    let all = Box::pin(async { tokio::join!(core(), core(), insert(0), insert(1)) });
    let (first, second, (), ()) = tokio::time::timeout(Duration::from_mins(1), all)
        .await
        .expect("all events should be numbered within a minute");

    assert_eq!(first + second, 2 * EVENTS);
    assert!(first > 0 && second > 0, "{first} and {second}");
    let retries = log.runs.load(Ordering::SeqCst) - calls.into_inner();
    assert_eq!(retries, 0, "deadlocks");
    for store in [0, 1] {
        let numbers = log.numbers(store).await.into_iter();
        let numbers = numbers.map(|(_, number)| usize::try_from(number).unwrap());
        assert_eq!(
            numbers.collect::<Vec<_>>(),
            (1..=EVENTS).collect::<Vec<_>>()
        );
    }
    let all = list_of_all_stores(log.storage.reader(), 0, 1000)
        .await
        .unwrap();
    let positions = all
        .iter()
        .map(|event| usize::try_from(event.position).unwrap());
    assert_eq!(
        positions.collect::<Vec<_>>(),
        (1..=2 * EVENTS).collect::<Vec<_>>()
    );
}

/// Queues a new delivery.
async fn create(storage: &Storage, store_id: StoreId) -> DeliveryId {
    let id = DeliveryId::new();
    let create = storage.write(move |transaction| async move {
        let created = [store_id.0.into(), id.0.into()];
        rows::run(&transaction, QUEUE_CREATION, created).await
    });
    create.await.unwrap();
    id
}

async fn move_to_log(storage: &Storage, limit: usize) -> task_changes::Moved {
    let moved = storage.write(move |transaction| async move {
        task_changes::move_to_log(&transaction, limit, QueueHeads::BEGINNING, NOW).await
    });
    moved.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_new_delivery_gets_its_event_with_its_place_in_the_log_of_changes() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let log = Log::with(None, storage);
        let earlier = log.insert_event(0, 1).await;
        assert_eq!(log.assign_numbers(9).await, Some(1));
        let mut created = Vec::new();
        for store in [0, 1, 0] {
            created.push((
                log.stores[store],
                create(&log.storage, log.stores[store]).await,
            ));
        }

        for count in [2, 1, 0] {
            let moved = move_to_log(&log.storage, 2).await;
            assert_eq!((moved.changes, moved.created), (count, count));
        }

        let events = list_of_all_stores(log.storage.reader(), 1, 9)
            .await
            .unwrap();
        let numbers = [(2, 2), (1, 3), (3, 4)];
        let expected = created.iter().zip(numbers);
        let expected: Vec<_> = expected
            .map(|((store_id, id), (number, position))| Event {
                id: EventId(id.0),
                store_id: *store_id,
                name: "delivery.created".to_owned(),
                object: Object::Delivery(*id),
                created_at: NOW,
                number,
                position,
            })
            .collect();
        assert_eq!(events, expected);
        let later = log.insert_event(0, 1).await;
        assert_eq!(log.assign_numbers(9).await, Some(1));
        let of_store = [earlier, events[0].id, events[2].id, later];
        let numbers: Vec<_> = of_store.into_iter().zip(1..).collect();
        assert_eq!(log.numbers(0).await, numbers);
        assert_eq!(log.last_position().await, 5);
    }
}

#[tokio::test]
async fn an_event_of_a_new_delivery_is_numbered_after_that_of_its_creation() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let log = Log::with(None, storage);
        let store_id = log.stores[0];
        let id = create(&log.storage, store_id).await;
        let write = log.storage.write(move |transaction| async move {
            let event = NewEvent {
                store_id,
                id: EventId::new(),
                name: "delivery.cancelled",
                object: Object::Delivery(id),
            };
            insert(&transaction, [event], NOW).await
        });
        write.await.unwrap();

        assert_eq!(log.assign_numbers(9).await, Some(0));
        assert_eq!(move_to_log(&log.storage, 9).await.changes, 1);
        assert_eq!(log.assign_numbers(9).await, Some(1));

        let events = list(log.storage.reader(), store_id, 0, 9).await.unwrap();
        let names: Vec<_> = events.into_iter().map(|event| event.name).collect();
        assert_eq!(names, ["delivery.created", "delivery.cancelled"]);
    }
}
