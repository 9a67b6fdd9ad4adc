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

    /// Writes an event of a store, created some hours after [`NOW`].
    async fn happen(&self, store: usize, hours: i64) -> EventId {
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

    async fn number(&self, holder: Uuid, lease: Duration, most: usize) -> Round {
        self.storage
            .write(move |transaction| {
                Box::pin(async move { number(transaction, (holder, lease), most).await })
            })
            .await
            .unwrap()
    }

    async fn trim(&self, hours: i64) -> usize {
        let before = NOW + SignedDuration::from_hours(hours);
        self.storage
            .write(move |transaction| Box::pin(async move { trim(transaction, before, 500).await }))
            .await
            .unwrap()
    }

    async fn numbers(&self, store: usize) -> Vec<(EventId, i64)> {
        let events = list(self.storage.reader(), self.stores[store], 0, 1000).await;
        let of = |event: Event| (event.id, event.number);
        events.unwrap().into_iter().map(of).collect()
    }
}

#[tokio::test]
async fn each_stores_events_are_numbered_from_one_and_all_stores_positions_too() {
    let log = Log::open().await;
    let (a, b) = (log.happen(0, 1).await, log.happen(1, 2).await);
    let c = log.happen(0, 3).await;
    let holder = Uuid::now_v7();

    assert_eq!(log.number(holder, LONG, 2).await, Round::Numbered(2));
    // Created before the others, committed after them.
    let late = log.happen(0, 0).await;
    assert_eq!(log.number(holder, LONG, 10).await, Round::Numbered(2));
    assert_eq!(log.number(holder, LONG, 10).await, Round::Numbered(0));

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
async fn one_holder_numbers_until_its_lease_is_over_or_given_up() {
    let log = Log::open().await;
    let (first, second, third) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    log.happen(0, 0).await;

    assert_eq!(log.number(first, LONG, 10).await, Round::Numbered(1));
    assert_eq!(log.number(second, LONG, 10).await, Round::NotOurs);
    assert_eq!(
        log.number(first, Duration::ZERO, 10).await,
        Round::Numbered(0)
    );
    assert_eq!(log.number(second, LONG, 10).await, Round::Numbered(0));
    for (holder, expected) in [(first, Round::NotOurs), (second, Round::Numbered(1))] {
        log.storage
            .write(move |transaction| {
                Box::pin(async move { give_up(transaction, Some(holder)).await })
            })
            .await
            .unwrap();
        log.happen(0, 0).await;
        let all = 10;
        match expected {
            Round::NotOurs => assert_eq!(log.number(third, LONG, all).await, expected),
            Round::Numbered(_) => {
                assert_eq!(log.number(third, LONG, all).await, Round::Numbered(2));
            }
        }
    }
}

#[tokio::test]
async fn old_events_go_and_the_numbers_go_on() {
    let log = Log::open().await;
    let holder = Uuid::now_v7();
    for hours in 0..4 {
        log.happen(0, hours).await;
    }
    log.happen(1, 10).await;
    log.number(holder, LONG, 10).await;

    assert_eq!(log.trim(0).await, 0);
    assert_eq!(log.trim(3).await, 3);
    let kept = log.happen(0, 11).await;
    log.number(holder, LONG, 10).await;

    let reader = log.storage.reader();
    let extent = extent(reader, log.stores[0]).await.unwrap();
    assert_eq!((extent.first(), extent.last), (4, 5));
    assert_eq!(log.numbers(0).await.last(), Some(&(kept, 5)));
    let other = super::extent(reader, log.stores[1]).await.unwrap();
    assert_eq!((other.first(), other.last), (1, 1));
    let all = extent_of_all_stores(reader).await.unwrap();
    assert_eq!((all.first(), all.last), (4, 6));
    assert_eq!(log.trim(100).await, 3);
    assert_eq!(log.numbers(0).await, []);
    log.happen(0, 200).await;
    log.number(holder, LONG, 10).await;
    assert_eq!(log.numbers(0).await.len(), 1);
    let extent = super::extent(reader, log.stores[0]).await.unwrap();
    assert_eq!((extent.first(), extent.last), (6, 6), "the numbers go on");
}
