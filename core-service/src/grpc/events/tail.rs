//! The newest events of all stores: one poller reads them for all streams of a core.

use std::{collections::VecDeque, time::Duration};

use domain::event::Event;
use storage::{Storage, events};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// How often the log is polled for events that other cores have numbered: they send no signal.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The most events that one query reads.
const BATCH: u64 = 100;

/// How many events are kept: a stream that falls further behind reads the log itself.
const CAPACITY: usize = 1000;

/// The end of the log, without gaps.
#[derive(Debug)]
pub(super) struct Tail {
    /// The position before the first event here.
    after: i64,
    events: VecDeque<Event>,
}

impl Tail {
    /// The tail of a log that was not read yet.
    pub(super) fn unread() -> Self {
        Self::empty(i64::MAX)
    }

    fn empty(after: i64) -> Self {
        Self {
            after,
            events: VecDeque::new(),
        }
    }

    /// The events after a position, in order; `None` if some of them may be missing here.
    pub(super) fn events_after(&self, position: i64) -> Option<impl Iterator<Item = &Event>> {
        (position >= self.after).then(|| {
            let first = self
                .events
                .partition_point(|event| event.position <= position);
            self.events.range(first..)
        })
    }

    fn last(&self) -> i64 {
        self.events
            .back()
            .map_or(self.after, |event| event.position)
    }

    fn push(&mut self, events: Vec<Event>) {
        self.events.extend(events);
        while self.events.len() > CAPACITY {
            self.after = self
                .events
                .pop_front()
                .map_or(self.after, |event| event.position);
        }
    }
}

/// Polls the log for the streams that subscribe to its tail.
pub(in crate::grpc) struct TailPoller<'a> {
    pub(super) storage: &'a Storage,
    pub(super) tail: &'a watch::Sender<Tail>,
    /// Signalled when this core has numbered events.
    pub(super) events_sequenced: watch::Receiver<()>,
    /// Signalled when a stream opens.
    pub(super) opened: watch::Receiver<()>,
}

impl TailPoller<'_> {
    /// Polls while there are streams, until shutdown.
    pub(super) async fn run(mut self, shutdown: &CancellationToken) {
        let mut is_reading = false;
        loop {
            if self.tail.receiver_count() == 0 {
                is_reading = false;
                tokio::select! {
                    _ = self.opened.changed() => {}
                    () = shutdown.cancelled() => return,
                }
            }
            let polled = if is_reading {
                self.poll().await
            } else {
                self.start().await.map(|()| true)
            };
            match polled {
                Ok(true) => {
                    is_reading = true;
                    continue;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read new events for the streams"
                ),
            }
            tokio::select! {
                _ = self.events_sequenced.changed() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Begins at the end of the log: streams read what is before it themselves.
    async fn start(&self) -> Result<(), Error> {
        let bounds = events::bounds_of_all_stores(self.storage.reader()).await?;
        self.tail.send_replace(Tail::empty(bounds.last));
        Ok(())
    }

    /// Returns whether there were new events.
    async fn poll(&self) -> Result<bool, Error> {
        let last = self.tail.borrow().last();
        let events = events::list_of_all_stores(self.storage.reader(), last, BATCH).await?;
        let is_any = !events.is_empty();
        if is_any {
            self.tail.send_modify(|tail| tail.push(events));
        }
        Ok(is_any)
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        event::Object,
        id::{DeliveryId, EventId, StoreId},
    };
    use jiff::Timestamp;

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

    fn positions(tail: &Tail, after: i64) -> Option<Vec<i64>> {
        let events = tail.events_after(after)?;
        Some(events.map(|event| event.position).collect())
    }

    #[test]
    fn a_tail_has_the_events_after_each_position_that_it_covers() {
        let mut tail = Tail::empty(3);
        assert_eq!(tail.last(), 3);
        tail.push(vec![event(4), event(5)]);

        assert_eq!(positions(&tail, 2), None);
        assert_eq!(positions(&tail, 3), Some(vec![4, 5]));
        assert_eq!(positions(&tail, 4), Some(vec![5]));
        assert_eq!(positions(&tail, 9), Some(vec![]));
        assert_eq!(positions(&Tail::unread(), 9), None);
    }

    #[test]
    fn a_full_tail_drops_its_oldest_events() {
        let mut tail = Tail::empty(0);
        tail.push((1..=1002).map(event).collect());

        assert_eq!(tail.last(), 1002);
        assert_eq!(positions(&tail, 1), None);
        assert_eq!(positions(&tail, 2).unwrap().len(), CAPACITY);
    }
}
