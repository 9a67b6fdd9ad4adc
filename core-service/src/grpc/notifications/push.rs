//! Sends notifications on a stream: pre-leased ones, and those that a claim finds.

use std::{sync::Arc, time::Duration};

use process::clock::Clock;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    claims::{ClaimResult, Claims, OutgoingBatch},
    leases::Leases,
    outcomes::Outcomes,
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

/// The sending half of a stream.
pub(in crate::grpc) struct Pusher {
    pub(in crate::grpc) clock: Clock,
    pub(in crate::grpc) claims: Arc<Claims>,
    pub(in crate::grpc) outcomes: Arc<Outcomes>,
    pub(in crate::grpc) leases: Arc<Leases>,
    /// Signalled when notifications become claimable.
    pub(in crate::grpc) notifications_ready: watch::Sender<()>,
}

impl Pusher {
    /// Sends pre-leased notifications, and claims due ones while there is credit.
    pub(super) async fn run(
        &self,
        stream: &DispatcherStream,
        pre_leased: &mut mpsc::UnboundedReceiver<PreLeased>,
        responses: &Responses,
        closed: &CancellationToken,
    ) -> Result<(), Error> {
        let mut notifications_ready = self.notifications_ready.subscribe();
        let mut changes = self.clock.manual_changes();
        let mut interval = MIN_POLL_INTERVAL;
        let mut next_poll = Instant::now();
        let mut last_poll = next_poll;
        loop {
            tokio::select! {
                biased;
                () = closed.cancelled() => return Ok(()),
                Some(first) = pre_leased.recv() => {
                    let Some(permit) = reserve(responses, closed).await else {
                        return self.leases.release(vec![first.lease()]).await;
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
                match self.claims.claim(stream).await? {
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
        self.outcomes
            .record_undecryptable(&batch.undecryptable)
            .await;
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
        self.claims.outgoing_batch(stream, claimed, leased_at)
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
pub(super) mod tests {
    use jiff::SignedDuration;
    use process::metrics::Exposition;
    use uuid::Uuid;

    use super::{
        super::{
            attempt_log::attempt_log,
            claims::tests::{ago, assert_leases, claims},
            streams::Streams,
        },
        *,
    };
    use crate::metrics::Metrics;

    pub(in super::super) fn pusher(claims: &Arc<Claims>) -> Pusher {
        let (storage, clock) = (Arc::clone(&claims.storage), claims.clock.clone());
        let notifications_ready = watch::Sender::new(());
        let outcomes = Outcomes {
            storage: Arc::clone(&storage),
            clock: clock.clone(),
            claims: Arc::clone(claims),
            disable_after: SignedDuration::from_hours(1),
            metrics: Metrics::new(),
            attempt_log: attempt_log().0,
            events_written: watch::Sender::new(()),
            notifications_ready: notifications_ready.clone(),
        };
        let leases = Leases {
            storage,
            clock: clock.clone(),
            notifications_ready: notifications_ready.clone(),
        };
        Pusher {
            clock,
            claims: Arc::clone(claims),
            outcomes: Arc::new(outcomes),
            leases: Arc::new(leases),
            notifications_ready,
        }
    }

    /// The notifications share a message; the first has the oldest lease.
    #[tokio::test]
    async fn pre_leased_notifications_are_sent_with_what_is_left_of_the_oldest_lease() {
        let (_directory, claims) = claims().await;
        let (streams, _unsent_leases) = Streams::new();
        let (responses, mut sent) = mpsc::channel(1);
        let (stream, _) = streams.open(&responses);
        let (queue, mut pre_leased) = mpsc::unbounded_channel();
        let leased_at = [ago(20), ago(5)];
        for leased_at in leased_at {
            let pre_leased = PreLeased {
                claimed: claims.sendable_notification(),
                lease_token: Uuid::now_v7(),
                leased_at,
            };
            queue.send(pre_leased).unwrap();
        }
        let (pusher, closed) = (pusher(&claims), CancellationToken::new());

        let response = tokio::select! {
            ended = pusher.run(&stream, &mut pre_leased, &responses, &closed) => {
                panic!("the stream ends: {ended:?}")
            }
            response = sent.recv() => response.unwrap().unwrap(),
        };

        assert_leases(&response.notifications, 2, leased_at[0]);
    }

    /// How often the database was read.
    async fn reads(claims: &Claims) -> u64 {
        let mut exposition = Exposition::new();
        claims.storage.register_metrics(exposition.registry());
        let rendered = exposition.render().await;
        let name = "db_client_connection_wait_time_seconds_count";
        let line = rendered.lines().find(|line| line.starts_with(name));
        // There is none before the first read.
        let value = line.and_then(|line| line.rsplit_once(' '));
        value.map_or(0, |(_, count)| count.parse().unwrap())
    }

    #[tokio::test]
    async fn a_stream_without_due_notifications_is_polled_at_growing_intervals() {
        let (_directory, claims) = claims().await;
        let (streams, _unsent_leases) = Streams::new();
        let (responses, _sent) = mpsc::channel(1);
        let (stream, mut pre_leased) = streams.open(&responses);
        stream.flow_control().grant(1);
        let (pusher, closed) = (pusher(&claims), CancellationToken::new());
        let before = reads(&claims).await;

        // At once, after 50 ms, and after another 100 ms.
        let running = pusher.run(&stream, &mut pre_leased, &responses, &closed);
        let ended = tokio::time::timeout(3 * MIN_POLL_INTERVAL, running).await;

        assert!(ended.is_err(), "{ended:?}");
        // A poll that finds nothing reads twice.
        let polls = (reads(&claims).await - before).div_ceil(2);
        assert!((1..=3).contains(&polls), "{polls}");
    }
}
