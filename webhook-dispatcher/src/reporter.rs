//! Reports the outcomes of one session in batches, one at a time: to its core or, if that fails, to
//! any other, until one has recorded them. The outcome of a test send is reported alone and to the
//! session's core only.

use std::sync::Arc;

use core_client::CoreAddr;
use proto::{Outcome, ReportOutcomesRequest};
use tokio::{
    sync::{Notify, mpsc::UnboundedReceiver},
    time::{Duration, Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::{
    backoff::Backoff,
    connections::Connections,
    in_flight::{InFlight, InFlightGuard},
};

/// The most outcomes in one report: core records as many in one transaction, and they stay far
/// below gRPC's default of 4 MiB.
const MAX_OUTCOMES: usize = 256;

/// How long to wait for more outcomes, so that they are recorded together. Short, because the freed
/// capacity is unused until then.
const BATCH_WINDOW: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Completed {
    pub outcome: Outcome,
    /// Core ignores the outcome after this instant. `None` if it is unknown.
    pub lease_expires_at: Option<Instant>,
    /// `None` for a test send, which uses no capacity.
    #[expect(dead_code, reason = "dropped to free the capacity")]
    pub guard: Option<InFlightGuard>,
}

/// How many times a new connection or token ends the wait before a report is repeated. Limited, so
/// that a core that rejects every token is not asked for many tokens.
const MAX_RENEWALS: u32 = 8;

/// Reports the outcomes of one session.
pub(crate) struct Reporter {
    /// The session's core.
    pub core: CoreAddr,
    pub connections: Connections,
    pub in_flight: InFlight,
    /// Signalled when the session's core rejects its access token.
    pub token_rejected: Notify,
    /// Once cancelled, the report of a test send is not repeated: if the core is not reachable, the
    /// client that waits there for the test send has got an error.
    pub shutdown: CancellationToken,
}

impl Reporter {
    /// Runs until no more outcomes can come and all are reported.
    pub(crate) async fn run(self: Arc<Self>, mut outcomes: UnboundedReceiver<Completed>) {
        while let Some(first) = outcomes.recv().await {
            let batch = self.batch(first, &mut outcomes).await;
            self.report(batch, false).await;
        }
    }

    /// Reports the outcome of a test send to the core that asked for it, where a client waits.
    pub(crate) async fn report_test(&self, completed: Completed) {
        self.report(vec![completed], true).await;
    }

    /// Waits for more outcomes until the batch is full, nothing is in flight that could be added,
    /// or the window has passed.
    async fn batch(
        &self,
        first: Completed,
        outcomes: &mut UnboundedReceiver<Completed>,
    ) -> Vec<Completed> {
        let deadline = Instant::now() + BATCH_WINDOW;
        let mut batch = vec![first];
        while batch.len() < MAX_OUTCOMES && batch.len() < self.in_flight.count() {
            tokio::select! {
                biased;
                next = outcomes.recv() => match next {
                    Some(next) => batch.push(next),
                    None => break,
                },
                () = sleep_until(deadline) => break,
            }
        }
        batch
    }

    /// Reports until a core, or only the session's own, has recorded the outcomes or their leases
    /// have expired.
    async fn report(&self, mut batch: Vec<Completed>, only_own: bool) {
        let mut connections = self.connections.subscribe();
        let mut backoff = Backoff::default();
        let mut renewals = 0;
        while remove_expired(&mut batch) {
            let mut open = connections.borrow_and_update().clone();
            open.retain(|connection| !only_own || connection.core == self.core);
            open.sort_by_key(|connection| connection.core != self.core);
            for connection in open {
                let outcomes = batch.iter().map(|completed| completed.outcome.clone());
                let request = ReportOutcomesRequest {
                    outcomes: outcomes.collect(),
                };
                match connection.report(request).await {
                    Ok(()) => return,
                    Err(status) => {
                        tracing::warn!(
                            error = &status as &dyn std::error::Error,
                            core = %connection.core,
                            count = batch.len(),
                            "outcomes could not be reported, retrying"
                        );
                        let is_own = connection.core == self.core;
                        if is_own && status.code() == Code::Unauthenticated {
                            self.token_rejected.notify_one();
                        }
                    }
                }
            }
            tokio::select! {
                biased;
                () = self.shutdown.cancelled(), if only_own => {
                    tracing::warn!(core = %self.core, "the outcome of a test send is not reported");
                    return;
                }
                () = sleep(backoff.next()) => {}
                Ok(()) = connections.changed(), if renewals < MAX_RENEWALS => {
                    renewals += 1;
                    backoff.reset();
                }
            }
        }
    }
}

/// Removes outcomes whose lease has expired, which core would ignore. Returns whether any are left.
fn remove_expired(batch: &mut Vec<Completed>) -> bool {
    let now = Instant::now();
    batch.retain(|completed| completed.lease_expires_at.is_none_or(|expiry| now < expiry));
    !batch.is_empty()
}

#[cfg(test)]
mod tests {
    use core_client::{CoreConfig, Cores};
    use futures_util::FutureExt as _;
    use tokio::{sync::mpsc, task::unconstrained};

    use super::*;

    /// The size of the batch of these outcomes, while others are in flight; `None` if it waits.
    async fn batch_of(completed: usize, others: usize) -> Option<usize> {
        let urls = ["http://127.0.0.1:1".parse().unwrap()];
        let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
        let reporter = Reporter {
            core: cores.addresses().await.unwrap().remove(0),
            connections: Connections::default(),
            in_flight: InFlight::default(),
            token_rejected: Notify::new(),
            shutdown: CancellationToken::new(),
        };
        let _others: Vec<_> = (0..others).map(|_| reporter.in_flight.add()).collect();
        let outcome = || Completed {
            outcome: Outcome::default(),
            lease_expires_at: None,
            guard: Some(reporter.in_flight.add()),
        };
        let (sender, mut outcomes) = mpsc::unbounded_channel();
        for _ in 1..completed {
            sender.send(outcome()).unwrap();
        }
        let batch = reporter.batch(outcome(), &mut outcomes);
        let batch = unconstrained(batch).now_or_never()?;
        Some(batch.len())
    }

    #[tokio::test]
    async fn a_batch_waits_only_while_it_is_not_full_and_others_are_in_flight() {
        for (completed, others, expected) in [
            (1, 0, Some(1)),
            (3, 0, Some(3)),
            (3, 1, None),
            (MAX_OUTCOMES, 1, Some(MAX_OUTCOMES)),
            (MAX_OUTCOMES + 1, 0, Some(MAX_OUTCOMES)),
        ] {
            let size = batch_of(completed, others).await;
            assert_eq!(size, expected, "{completed}, {others}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_are_reported_until_their_lease_expires() {
        let in_flight = InFlight::default();
        let now = Instant::now();
        let completed = |name: &str, lease_expires_at| Completed {
            outcome: Outcome {
                name: name.to_owned(),
                ..Outcome::default()
            },
            lease_expires_at,
            guard: Some(in_flight.add()),
        };
        let mut batch = vec![
            completed("expired", Some(now)),
            completed("without a lease", None),
            completed("leased", Some(now + Duration::from_nanos(1))),
        ];

        assert!(remove_expired(&mut batch));

        let left: Vec<_> = batch.iter().map(|left| &*left.outcome.name).collect();
        assert_eq!(left, ["without a lease", "leased"]);
        assert!(!remove_expired(&mut vec![completed("expired", Some(now))]));
    }
}
