//! Numbers and positions, against a real database.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::*;
use crate::{Storage, fixture};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LONG: Duration = Duration::from_hours(1);

struct Log {
    _directory: tempfile::TempDir,
    storage: Arc<Storage>,
    stores: [StoreId; 2],
}

impl Log {
    async fn open() -> Self {
        let (directory, storage) = fixture::sqlite().await;
        Self {
            _directory: directory,
            storage,
            stores: [StoreId::new(), StoreId::new()],
        }
    }

    /// Inserts an event of a store, created some hours after [`NOW`].
    async fn insert_event(&self, store: usize, hours: i64) -> EventId {
        let (store_id, id) = (self.stores[store], EventId::new());
        let now = NOW + SignedDuration::from_hours(hours);
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    let object = Object::Delivery(DeliveryId(id.0));
                    let event = (store_id, id, "delivery.picked", object);
                    insert(transaction, [event], now).await?;
                    Ok::<_, Error>(())
                })
            })
            .await
            .unwrap();
        id
    }

    async fn number(&self, lease_owner: Uuid, lease: Duration, limit: usize) -> SequencerRun {
        self.storage
            .write(move |transaction| {
                Box::pin(
                    async move { assign_numbers(transaction, (lease_owner, lease), limit).await },
                )
            })
            .await
            .unwrap()
    }

    async fn remove_oldest(&self, hours: i64) -> usize {
        let before = NOW + SignedDuration::from_hours(hours);
        self.storage
            .write(move |transaction| {
                Box::pin(async move { remove_oldest(transaction, before, 500).await })
            })
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
    let lease_owner = Uuid::now_v7();

    assert_eq!(
        log.number(lease_owner, LONG, 2).await,
        SequencerRun::Numbered(2)
    );
    // Created before the others, committed after them.
    let late = log.insert_event(0, 0).await;
    assert_eq!(
        log.number(lease_owner, LONG, 10).await,
        SequencerRun::Numbered(2)
    );
    assert_eq!(
        log.number(lease_owner, LONG, 10).await,
        SequencerRun::Numbered(0)
    );

    assert_eq!(log.numbers(0).await, [(a, 1), (late, 2), (c, 3)]);
    assert_eq!(log.numbers(1).await, [(b, 1)]);
    let all = list_of_all_stores(log.storage.reader(), 0, 10)
        .await
        .unwrap();
    let all: Vec<_> = all.iter().map(|event| (event.id, event.position)).collect();
    assert_eq!(all, [(a, 1), (b, 2), (late, 3), (c, 4)]);
    assert!(!is_any_unnumbered(log.storage.reader()).await.unwrap());
}

#[tokio::test]
async fn only_the_lease_owner_assigns_numbers_until_its_lease_expires_or_is_released() {
    let log = Log::open().await;
    let (first, second, third) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    log.insert_event(0, 0).await;

    assert_eq!(log.number(first, LONG, 10).await, SequencerRun::Numbered(1));
    assert_eq!(
        log.number(second, LONG, 10).await,
        SequencerRun::LeaseHeldElsewhere
    );
    assert_eq!(
        log.number(first, Duration::ZERO, 10).await,
        SequencerRun::Numbered(0)
    );
    assert_eq!(
        log.number(second, LONG, 10).await,
        SequencerRun::Numbered(0)
    );
    for (lease_owner, expected) in [
        (first, SequencerRun::LeaseHeldElsewhere),
        (second, SequencerRun::Numbered(1)),
    ] {
        log.storage
            .write(move |transaction| {
                Box::pin(async move { release_lease(transaction, Some(lease_owner)).await })
            })
            .await
            .unwrap();
        log.insert_event(0, 0).await;
        let all = 10;
        match expected {
            SequencerRun::LeaseHeldElsewhere => {
                assert_eq!(log.number(third, LONG, all).await, expected);
            }
            SequencerRun::Numbered(_) => {
                assert_eq!(
                    log.number(third, LONG, all).await,
                    SequencerRun::Numbered(2)
                );
            }
        }
    }
}

#[tokio::test]
async fn numbering_continues_after_old_events_are_removed() {
    let log = Log::open().await;
    let lease_owner = Uuid::now_v7();
    for hours in 0..4 {
        log.insert_event(0, hours).await;
    }
    log.insert_event(1, 10).await;
    log.number(lease_owner, LONG, 10).await;

    assert_eq!(log.remove_oldest(0).await, 0);
    assert_eq!(log.remove_oldest(3).await, 3);
    let newest = log.insert_event(0, 11).await;
    log.number(lease_owner, LONG, 10).await;

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
    log.number(lease_owner, LONG, 10).await;
    assert_eq!(log.numbers(0).await.len(), 1);
    let bounds = super::bounds(reader, log.stores[0]).await.unwrap();
    assert_eq!((bounds.first(), bounds.last), (6, 6), "numbering continues");
}
