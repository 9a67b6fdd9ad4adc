//! Streams the events of all stores as they are numbered. One poller reads new ones for all streams of
//! a core.

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::{api_client::Scope, event::Event};
use storage::{Storage, events};
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{cursor_error, message};
use crate::{auth::caller::Caller, error::Error};

/// How often the log is polled for events that other cores have numbered: they send no signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The most events that one query reads, and that one message has.
const BATCH: u64 = 100;

/// How long a stream without events takes to tell that it still follows the log. Shorter than the
/// time after which proxies and NAT forget idle connections.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// How many batches are kept: a stream that falls further behind reads the log itself.
const CAPACITY: usize = 64;

type Responses = mpsc::Sender<Result<proto::WatchEventsResponse, Status>>;

/// Fails unless the caller may see the events of all stores.
pub(super) fn authorize(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::Admin) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

pub(crate) struct EventFeed {
    storage: Arc<Storage>,
    /// New events in batches, in order. After an empty one, the log may have events that are in none.
    new_events: broadcast::Sender<Arc<[Event]>>,
    /// Signalled when a stream opens.
    opened: Notify,
    shutdown: CancellationToken,
}

/// The events after a position.
pub(super) struct Subscription {
    new_events: broadcast::Receiver<Arc<[Event]>>,
    after: i64,
    /// Whether the log has events that are not received.
    is_behind: bool,
}

impl EventFeed {
    pub(crate) fn new(storage: Arc<Storage>, shutdown: CancellationToken) -> Self {
        Self {
            storage,
            new_events: broadcast::Sender::new(CAPACITY),
            opened: Notify::new(),
            shutdown,
        }
    }

    /// Reads new events while there are streams, until shutdown. `events_sequenced` is signalled when
    /// this core has numbered events.
    pub(crate) async fn poll(self: Arc<Self>, mut events_sequenced: watch::Receiver<()>) {
        let mut last = None;
        loop {
            if self.new_events.receiver_count() == 0 {
                last = None;
                tokio::select! {
                    () = self.opened.notified() => {}
                    () = self.shutdown.cancelled() => return,
                }
            }
            match self.read_new(&mut last).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read new events for the streams"
                ),
            }
            tokio::select! {
                _ = events_sequenced.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Reads the events after the position `last`, or, without one, the end of the log. Returns
    /// whether there may be more.
    async fn read_new(&self, last: &mut Option<i64>) -> Result<bool, Error> {
        let reader = self.storage.reader();
        let batch: Arc<[_]> = if let Some(after) = *last {
            let new = events::list_of_all_stores(reader, after, BATCH).await?;
            let Some(newest) = new.last() else {
                return Ok(false);
            };
            *last = Some(newest.position);
            new.into()
        } else {
            *last = Some(events::bounds_of_all_stores(reader).await?.last);
            Arc::default()
        };
        // Fails if no stream is left.
        let _ = self.new_events.send(batch);
        Ok(true)
    }

    /// Subscribes to the events after a position, the newest by default. Fails if it is invalid.
    pub(super) async fn subscribe(&self, after: Option<i64>) -> Result<Subscription, Error> {
        // Before the query: what is numbered after it is received.
        let new_events = self.new_events.subscribe();
        self.opened.notify_one();
        let bounds = events::bounds_of_all_stores(self.storage.reader()).await?;
        let after = after.unwrap_or(bounds.last);
        bounds
            .check_cursor(after)
            .map_err(|error| cursor_error(error, "after_position"))?;
        Ok(Subscription {
            new_events,
            after,
            is_behind: after < bounds.last,
        })
    }

    /// Sends the position of a subscription, then its events and a heartbeat between them, until the
    /// caller disconnects, its token expires, it is no longer permitted, or core shuts down.
    pub(super) async fn serve(
        &self,
        mut revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
        Subscription {
            mut new_events,
            mut after,
            mut is_behind,
        }: Subscription,
        responses: &Responses,
    ) -> Result<(), Error> {
        let message = |events, position| Ok(proto::WatchEventsResponse { events, position });
        // Fails if the caller has disconnected.
        let _ = responses.send(message(Vec::new(), after)).await;
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        heartbeat.reset();
        loop {
            // Before the query: a caller that does not read causes no queries.
            let permit = tokio::select! {
                permit = responses.reserve() => permit,
                error = &mut revoked => return Err(error),
                () = self.shutdown.cancelled() => return Err(Error::ShuttingDown),
            };
            let Ok(permit) = permit else {
                return Ok(());
            };
            let events = if is_behind {
                let events = self.read_log(after).await?;
                // What is newer than a part of a batch was received after the subscription.
                is_behind = u64::try_from(events.len()) == Ok(BATCH);
                events
            } else {
                let received = tokio::select! {
                    received = new_events.recv() => received,
                    _ = heartbeat.tick() => {
                        permit.send(message(Vec::new(), after));
                        continue;
                    }
                    () = responses.closed() => return Ok(()),
                    error = &mut revoked => return Err(error),
                    () = self.shutdown.cancelled() => return Err(Error::ShuttingDown),
                };
                // Fails if the stream is too far behind.
                let events = received.ok().and_then(|batch| events_after(after, &batch));
                is_behind = events.is_none();
                events.unwrap_or_default()
            };
            if let Some(last) = events.last() {
                after = last.position;
                permit.send(message(events, after));
                heartbeat.reset();
            }
        }
    }

    /// Reads events that this stream did not receive from the poller.
    async fn read_log(&self, after: i64) -> Result<Vec<proto::Event>, Error> {
        let reader = self.storage.reader();
        let events = events::list_of_all_stores(reader, after, BATCH).await?;
        // Read after the events, so that a slow reader notices when some were removed before it
        // read them.
        let bounds = events::bounds_of_all_stores(reader).await?;
        bounds
            .check_cursor(after)
            .map_err(|error| cursor_error(error, "after_position"))?;
        Ok(events.iter().map(message).collect())
    }
}

/// The events of a batch after a position. `None` if others may come before: positions have no gaps.
fn events_after(position: i64, batch: &[Event]) -> Option<Vec<proto::Event>> {
    let first = batch.first()?;
    let is_next = first.position <= position.saturating_add(1);
    let new = batch.iter().filter(|event| event.position > position);
    is_next.then(|| new.map(message).collect())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use domain::{
        event::Object,
        id::{DeliveryId, EventId, StoreId},
    };
    use futures_util::FutureExt as _;
    use jiff::Timestamp;
    use storage::fixture;

    use super::*;

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

    /// Writes events to the log and passes each on in a batch of its own.
    async fn publish(feed: &EventFeed, count: usize) {
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_mins(1);
        fixture::leased_notifications(&feed.storage, &webhook, count, lease).await;
        let numbered = feed.storage.write(move |transaction| async move {
            events::assign_numbers(&transaction, count).await
        });
        assert_eq!(numbered.await.unwrap(), Some(count));
        let log = events::list_of_all_stores(feed.storage.reader(), 0, 1000).await;
        for event in log.unwrap() {
            feed.new_events.send([event].into()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_stream_sends_each_event_once_if_it_falls_behind_or_not() {
        for count in [1, CAPACITY, CAPACITY + 1, 150] {
            let (_directory, storage) = fixture::sqlite().await;
            let feed = EventFeed::new(storage, CancellationToken::new());
            let subscription = feed.subscribe(None).await.unwrap();
            publish(&feed, count).await;

            let (responses, mut sent) = mpsc::channel(1);
            let mut revoked = pin!(std::future::pending::<Error>());
            let mut serving = pin!(feed.serve(revoked.as_mut(), subscription, &responses));
            let mut positions = Vec::new();
            while positions.len() < count {
                let response = tokio::select! {
                    ended = &mut serving => panic!("the stream ends: {ended:?}"),
                    response = sent.recv() => response.unwrap().unwrap(),
                };
                positions.extend(response.events.iter().map(|event| event.position));
            }

            let expected: Vec<_> = (1..).take(count).collect();
            assert_eq!(positions, expected);
            assert!(serving.as_mut().now_or_never().is_none());
            assert!(sent.try_recv().is_err(), "{count}");
        }
    }

    #[tokio::test]
    async fn a_stream_begins_with_its_position_and_repeats_it_while_there_are_no_events() {
        let (_directory, storage) = fixture::sqlite().await;
        let feed = EventFeed::new(storage, CancellationToken::new());
        let _other_stream = feed.subscribe(None).await.unwrap();
        publish(&feed, 3).await;
        let subscription = feed.subscribe(None).await.unwrap();
        let (responses, mut sent) = mpsc::channel(1);
        let mut revoked = pin!(std::future::pending::<Error>());
        let mut serving = pin!(feed.serve(revoked.as_mut(), subscription, &responses));
        tokio::time::pause();
        let opened = tokio::time::Instant::now();

        for seconds in [0, 30, 60] {
            let response = tokio::select! {
                ended = &mut serving => panic!("the stream ends: {ended:?}"),
                response = sent.recv() => response.unwrap().unwrap(),
            };

            assert_eq!(
                response,
                proto::WatchEventsResponse {
                    events: vec![],
                    position: 3
                }
            );
            assert_eq!(opened.elapsed().as_secs(), seconds);
        }
    }

    #[test]
    fn a_batch_has_the_events_after_each_position_that_it_follows() {
        let batch = [event(4), event(5)];
        let positions = |after| {
            let events = events_after(after, &batch)?;
            Some(events.iter().map(|event| event.position).collect())
        };

        assert_eq!(positions(2), None);
        assert_eq!(positions(3), Some(vec![4, 5]));
        assert_eq!(positions(4), Some(vec![5]));
        assert_eq!(positions(9), Some(vec![]));
        assert_eq!(events_after(9, &[]), None);
    }
}
