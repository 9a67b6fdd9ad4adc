//! Sends notifications on a stream: pre-leased ones, and those that a claim finds.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    claims::{ClaimResult, OutgoingBatch},
    stream_server::StreamServer,
    streams::{DispatcherStream, PreLeased, Response, Responses},
};
use crate::error::Error;

/// The most pre-leased notifications in one message.
const MAX_PER_MESSAGE: usize = 256;

/// The interval between polls of the database without a wake-up: short after a successful claim,
/// then longer each time. Polling finds what other processes enqueue and what becomes due on
/// schedule.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a dispatcher waits for more outcomes before it reports them.
const REPORT_WINDOW: Duration = Duration::from_millis(20);

impl StreamServer {
    /// Sends pre-leased notifications, and claims due ones while there is credit.
    pub(super) async fn push(
        &self,
        stream: &DispatcherStream,
        pre_leased: &mut mpsc::UnboundedReceiver<PreLeased>,
        responses: &Responses,
        closed: &CancellationToken,
    ) -> Result<(), Error> {
        let mut notifications_ready = self.queue.streams.notifications_ready.subscribe();
        let mut changes = self.queue.clock.manual_changes();
        let mut interval = MIN_POLL_INTERVAL;
        let mut next_poll = Instant::now();
        let mut last_poll = next_poll;
        loop {
            tokio::select! {
                biased;
                () = closed.cancelled() => return Ok(()),
                Some(first) = pre_leased.recv() => {
                    let Some(permit) = reserve(responses, closed).await else {
                        return self.queue.release(vec![first.lease()]).await;
                    };
                    let batch = self.pre_leased_batch(stream, first, pre_leased);
                    self.send(permit, batch).await;
                    continue;
                }
                _ = notifications_ready.changed() => interval = MIN_POLL_INTERVAL,
                () = changes.next() => interval = MIN_POLL_INTERVAL,
                () = stream.claim_now.notified(), if stream.has_unclaimed() => {
                    interval = MIN_POLL_INTERVAL;
                    // With less than half of the capacity free, waits for the next outcomes, so
                    // that one claim refills what they free too.
                    let refill_at = last_poll + REPORT_WINDOW;
                    if refill_at > Instant::now() && !stream.flow_control().is_half_free() {
                        next_poll = next_poll.min(refill_at);
                        continue;
                    }
                }
                () = stream.claim_soon.notified() => {
                    interval = MIN_POLL_INTERVAL;
                    next_poll = next_poll.min(last_poll + interval);
                    continue;
                }
                () = tokio::time::sleep_until(next_poll) => {
                    interval = (interval * 2).min(MAX_POLL_INTERVAL);
                }
            }
            loop {
                // Before the claim: a dispatcher that does not read gets no leases.
                let Some(permit) = reserve(responses, closed).await else {
                    return Ok(());
                };
                stream.flow_control().remove_expired(Instant::now());
                // Before the claim: a concurrent claim with outcomes may set it again.
                stream.clear_unclaimed();
                match self.queue.claim(stream).await? {
                    ClaimResult::NothingDue => {
                        stream.record_nothing_due();
                        break;
                    }
                    ClaimResult::NoCapacity => {
                        stream.record_no_capacity();
                        break;
                    }
                    ClaimResult::Claimed { batch, may_be_more } => {
                        stream.record_expects_more_due(true);
                        interval = MIN_POLL_INTERVAL;
                        self.send(permit, batch).await;
                        if !may_be_more {
                            break;
                        }
                    }
                }
            }
            last_poll = Instant::now();
            next_poll = last_poll + interval;
        }
    }

    async fn send(&self, permit: mpsc::Permit<'_, Response>, batch: OutgoingBatch) {
        permit.send(Ok(proto::ReceiveResponse {
            notifications: batch.notifications,
        }));
        self.queue.record_undecryptable(&batch.undecryptable).await;
    }

    /// The messages of a pre-leased notification and those queued behind it.
    fn pre_leased_batch(
        &self,
        stream: &DispatcherStream,
        first: PreLeased,
        queue: &mut mpsc::UnboundedReceiver<PreLeased>,
    ) -> OutgoingBatch {
        // The first has the oldest lease.
        let leased_at = first.leased_at;
        let queued = std::iter::from_fn(|| queue.try_recv().ok());
        let claimed: Vec<_> = std::iter::once(first)
            .chain(queued)
            .take(MAX_PER_MESSAGE)
            .map(|pre_leased| (pre_leased.claimed, pre_leased.lease_token))
            .collect();
        self.queue.outgoing_batch(stream, claimed, leased_at)
    }
}

/// Waits for capacity in the send queue; `None` when the stream closes.
async fn reserve<'a>(
    responses: &'a Responses,
    closed: &CancellationToken,
) -> Option<mpsc::Permit<'a, Response>> {
    tokio::select! {
        permit = responses.reserve() => permit.ok(),
        () = closed.cancelled() => None,
    }
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;
    use uuid::Uuid;

    use super::{
        super::{
            Queue,
            fixture::{ago, assert_leases, queue, stream_server},
        },
        *,
    };

    /// The notifications share a message; the first has the oldest lease.
    #[tokio::test]
    async fn pre_leased_notifications_are_sent_with_what_is_left_of_the_oldest_lease() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, mut sent) = mpsc::channel(1);
        let (stream, _) = queue.streams.open(&responses);
        let (sender, mut pre_leased) = mpsc::unbounded_channel();
        let leased_at = [ago(20), ago(5)];
        for leased_at in leased_at {
            let pre_leased = PreLeased {
                claimed: queue.sendable_notification(),
                lease_token: Uuid::now_v7(),
                leased_at,
            };
            sender.send(pre_leased).unwrap();
        }
        let (server, closed) = (stream_server(queue), CancellationToken::new());

        let response = tokio::select! {
            ended = server.push(&stream, &mut pre_leased, &responses, &closed) => {
                panic!("the stream ends: {ended:?}")
            }
            response = sent.recv() => response.unwrap().unwrap(),
        };

        assert_leases(&response.notifications, 2, leased_at[0]);
    }

    /// How often the database was read.
    async fn reads(queue: &Queue) -> u64 {
        let mut exposition = Exposition::new();
        queue.storage.register_metrics(exposition.registry());
        let rendered = exposition.render().await;
        let name = "db_client_connection_wait_time_seconds_count";
        let line = rendered.lines().find(|line| line.starts_with(name));
        // There is none before the first read.
        let value = line.and_then(|line| line.rsplit_once(' '));
        value.map_or(0, |(_, count)| count.parse().unwrap())
    }

    #[tokio::test]
    async fn a_stream_without_due_notifications_is_polled_at_growing_intervals() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, _sent) = mpsc::channel(1);
        let (stream, mut pre_leased) = queue.streams.open(&responses);
        stream.flow_control().grant(1);
        let (server, closed) = (stream_server(queue), CancellationToken::new());
        let before = reads(&server.queue).await;

        // At once, after 50 ms, and after another 100 ms.
        let running = server.push(&stream, &mut pre_leased, &responses, &closed);
        let ended = tokio::time::timeout(3 * MIN_POLL_INTERVAL, running).await;

        assert!(ended.is_err(), "{ended:?}");
        // A poll that finds nothing reads twice.
        let polls = (reads(&server.queue).await - before).div_ceil(2);
        assert!((1..=3).contains(&polls), "{polls}");
    }
}
