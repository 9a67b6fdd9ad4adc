//! Streams over a log in SQLite, and over a slow one.

use std::pin::pin;

use domain::{
    event::{Event, Object},
    id::{DeliveryId, EventId, StoreId},
};
use jiff::Timestamp;
use storage::{Storage, events, fixture};
use tokio::time::sleep;

use super::*;
use crate::services::events::EventLog;

fn event(position: i64) -> Event {
    Event {
        id: EventId::new(),
        store_id: StoreId::new(),
        name: String::new(),
        object: Object::Delivery(DeliveryId::new()),
        created_at: Timestamp::UNIX_EPOCH,
        number: position,
        position,
    }
}

fn feed(storage: Arc<Storage>) -> Feed<EventLog> {
    Feed::new(EventLog(storage), CancellationToken::new())
}

/// The positions of new events, and the one after them.
fn positions(events: &[Event], after: i64) -> (Vec<i64>, i64) {
    let positions = events.iter().map(|event| event.position);
    (positions.collect(), after)
}

/// Writes events to the log and passes each on in a batch of its own.
async fn publish(feed: &Feed<EventLog>, count: usize) {
    let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
    let lease = Duration::from_mins(1);
    let storage = &feed.log.0;
    fixture::leased_notifications(storage, &webhook, count, lease).await;
    let numbered = storage.write(move |transaction| async move {
        events::assign_numbers(&transaction, count, events::QueueHeads::BEGINNING).await
    });
    assert_eq!(numbered.await.unwrap(), Some(count));
    let log = events::list_of_all_stores(storage.reader(), 0, 1000).await;
    for event in log.unwrap() {
        feed.news.send([event].into()).unwrap();
    }
}

#[tokio::test]
async fn a_stream_sends_each_event_once_if_it_falls_behind_or_not() {
    for count in [1, EventLog::CAPACITY, EventLog::CAPACITY + 1, 150] {
        let (_directory, storage) = fixture::sqlite().await;
        let feed = feed(storage);
        let subscription = feed.subscribe(None).await.unwrap();
        publish(&feed, count).await;

        let (responses, mut sent) = mpsc::channel(1);
        let mut revoked = pin!(std::future::pending::<Error>());
        let mut serving = pin!(feed.serve(
            revoked.as_mut(),
            subscription,
            &responses,
            |events, after| Some(positions(events, after))
        ));
        let mut received = Vec::new();
        while received.len() < count {
            let (positions, _) = tokio::select! {
                ended = &mut serving => panic!("the stream ends: {ended:?}"),
                response = sent.recv() => response.unwrap().unwrap(),
            };
            received.extend(positions);
        }

        let expected: Vec<_> = (1..).take(count).collect();
        assert_eq!(received, expected);
        assert!(serving.as_mut().now_or_never().is_none());
        assert!(sent.try_recv().is_err(), "{count}");
    }
}

#[tokio::test]
async fn a_stream_begins_with_its_position_and_repeats_it_while_there_are_no_events() {
    let (_directory, storage) = fixture::sqlite().await;
    let feed = feed(storage);
    let _other_stream = feed.subscribe(None).await.unwrap();
    publish(&feed, 3).await;
    let subscription = feed.subscribe(None).await.unwrap();
    let (responses, mut sent) = mpsc::channel(1);
    let mut revoked = pin!(std::future::pending::<Error>());
    let mut serving = pin!(feed.serve(
        revoked.as_mut(),
        subscription,
        &responses,
        |events, after| Some(positions(events, after))
    ));
    tokio::time::pause();
    let opened = tokio::time::Instant::now();

    for seconds in [0, 30, 60] {
        let response = tokio::select! {
            ended = &mut serving => panic!("the stream ends: {ended:?}"),
            response = sent.recv() => response.unwrap().unwrap(),
        };

        assert_eq!(response, (vec![], 3));
        assert_eq!(opened.elapsed().as_secs(), seconds);
    }
}

/// A log of six entries, which is slow.
struct Six;

impl Log for Six {
    type Entry = i64;

    const BATCH: usize = 2;
    const CAPACITY: usize = 1;
    const ENTRY: &'static str = "number";
    const EXPIRED: &'static str = "";

    fn position(entry: &i64) -> i64 {
        *entry
    }

    async fn bounds(&self) -> Result<LogBounds, Error> {
        Ok(LogBounds {
            retained_after: 0,
            last: 6,
        })
    }

    async fn read(&self, after: i64) -> Result<Vec<i64>, Error> {
        sleep(HEARTBEAT_INTERVAL).await;
        Ok((after + 1..=6).take(Self::BATCH).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_needs_no_entry_tells_its_position_while_it_catches_up_and_after_it() {
    let feed = Feed::new(Six, CancellationToken::new());
    let subscription = feed.subscribe(Some(0)).await.unwrap();
    let (responses, mut sent) = mpsc::channel(1);
    let mut revoked = pin!(std::future::pending::<Error>());
    let respond = |entries: &[i64], position| entries.is_empty().then_some(position);
    let mut serving = pin!(feed.serve(revoked.as_mut(), subscription, &responses, respond));

    for position in [0, 2, 4, 6, 6] {
        let sent = tokio::select! {
            ended = &mut serving => panic!("the stream ends: {ended:?}"),
            response = sent.recv() => response.unwrap().unwrap(),
        };
        assert_eq!(sent, position);
    }
}

#[test]
fn a_batch_has_the_events_after_each_position_that_it_follows() {
    let batch = [event(4), event(5)];
    let positions = |after| {
        let events = entries_after::<EventLog>(after, &batch)?;
        Some(events.iter().map(|event| event.position).collect())
    };

    assert_eq!(positions(2), None);
    assert_eq!(positions(3), Some(vec![4, 5]));
    assert_eq!(positions(4), Some(vec![5]));
    assert_eq!(positions(9), Some(vec![]));
    assert_eq!(entries_after::<EventLog>(9, &[]), None);
}
