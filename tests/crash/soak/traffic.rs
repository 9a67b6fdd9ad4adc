//! Mixed traffic on a platform, and a journal of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use delivery::Credentials;
use tokio::{sync::watch, task::JoinSet, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::actors::{Actor, Creator, Follower, NewConnectionClient, Reader};
use crate::{caller::Caller, event_log::EventLog, failure::Failure, load::Acknowledged};

const CREATORS: usize = 4;
const READERS: usize = 2;
const NEW_CONNECTION_CLIENTS: usize = 2;

/// Longer than an outage.
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(1);

/// The URLs and clients of a platform.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) base_urls: Vec<String>,
    pub(super) core_urls: Vec<String>,
    pub(super) shop: Credentials,
    pub(super) operator: Credentials,
}

impl Access {
    pub(super) async fn shop(&self) -> Caller {
        Caller::authorized(&self.base_urls, &self.shop, "deliveries tasks").await
    }

    pub(super) async fn board(&self) -> Caller {
        Caller::authorized(&self.base_urls, &self.operator, "tasks:all").await
    }
}

/// Traffic until [`Traffic::finish`].
pub(super) struct Traffic {
    running: JoinSet<()>,
    finish: CancellationToken,
    journal: Arc<Journal>,
    /// The copy of the event log by the [`Follower`].
    log: Arc<tokio::sync::Mutex<EventLog>>,
}

/// What succeeded and failed.
#[derive(Default)]
pub(super) struct Journal {
    acknowledged: Mutex<Acknowledged>,
    /// Successes and failures of each kind of request.
    counts: Mutex<BTreeMap<&'static str, [u64; 2]>>,
    /// All successes.
    succeeded: watch::Sender<u64>,
    /// Failures that no fault explains.
    unexpected: Mutex<Vec<String>>,
}

impl Traffic {
    pub(super) async fn start(access: &Access) -> Self {
        let mut traffic = Self {
            running: JoinSet::new(),
            finish: CancellationToken::new(),
            journal: Arc::default(),
            log: Arc::default(),
        };
        for number in 0..CREATORS {
            traffic.spawn(Creator::new(access, number).await);
        }
        for number in 0..READERS {
            traffic.spawn(Reader::new(access, number).await);
        }
        for _ in 0..NEW_CONNECTION_CLIENTS {
            traffic.spawn(NewConnectionClient(access.clone()));
        }
        let follower = Follower::new(access, traffic.log.clone());
        traffic.spawn(follower.await);
        traffic
    }

    fn spawn<A: Actor>(&mut self, mut actor: A) {
        let (journal, finish) = (self.journal.clone(), self.finish.clone());
        self.running.spawn(async move {
            let mut ticks = tokio::time::interval(A::STEP_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while finish.run_until_cancelled(ticks.tick()).await.is_some() {
                actor.step(&journal).await;
            }
        });
    }

    /// Waits for this many more successful requests.
    pub(super) async fn wait_for_successes(&self, more: u64) {
        let mut succeeded = self.journal.succeeded.subscribe();
        let enough = *succeeded.borrow() + more;
        let enough = succeeded.wait_for(|succeeded| *succeeded >= enough);
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, enough).await.is_ok();
        assert!(in_time, "the platform does not serve: {}", self.counts());
    }

    /// The numbers of succeeded requests, of failed ones, of acknowledged creations and completions.
    pub(super) fn totals(&self) -> [u64; 4] {
        let counts = self.journal.counts.lock().unwrap();
        let failed = counts.values().map(|[_, failed]| failed).sum();
        drop(counts);
        let acknowledged = self.journal.acknowledged.lock().unwrap();
        let [created, done] = [acknowledged.created.len(), acknowledged.done.len()]
            .map(|count| u64::try_from(count).unwrap());
        [*self.journal.succeeded.borrow(), failed, created, done]
    }

    /// The successes and failures of each kind of request.
    pub(super) fn counts(&self) -> String {
        let counts = self.journal.counts.lock().unwrap();
        let each = counts.iter();
        let each = each.map(|(kind, [succeeded, failed])| format!("{kind} {succeeded}+{failed}"));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Ends the traffic; every creation and completion is retried until it is acknowledged. Returns
    /// the acknowledged writes, the copy of the event log, and the failures that no fault explains.
    pub(super) async fn finish(&mut self) -> (Acknowledged, EventLog, Vec<String>) {
        self.finish.cancel();
        let drained = async {
            while let Some(ended) = self.running.join_next().await {
                ended.unwrap();
            }
        };
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, drained).await;
        assert!(in_time.is_ok(), "requests never end: {}", self.counts());
        let acknowledged = std::mem::take(&mut *self.journal.acknowledged.lock().unwrap());
        assert_eq!(acknowledged.done, acknowledged.requested);
        let log = self.log.lock().await.clone();
        let unexpected = self.journal.unexpected.lock().unwrap().clone();
        (acknowledged, log, unexpected)
    }
}

impl Journal {
    pub(super) fn write<T>(&self, change: impl FnOnce(&mut Acknowledged) -> T) -> T {
        change(&mut self.acknowledged.lock().unwrap())
    }

    /// Counts a request over REST. Returns its result if it succeeded.
    pub(super) fn count_rest<T>(
        &self,
        kind: &'static str,
        result: Result<T, Failure>,
    ) -> Option<T> {
        let expected = Failure::is_expected_after_a_kill;
        self.count(kind, result, expected)
    }

    /// Counts a request, and records an unexpected failure. Returns its result if it succeeded.
    pub(super) fn count<T, E: ToString>(
        &self,
        kind: &'static str,
        result: Result<T, E>,
        is_expected: impl Fn(&E) -> bool,
    ) -> Option<T> {
        let is_failure = usize::from(result.is_err());
        self.counts.lock().unwrap().entry(kind).or_default()[is_failure] += 1;
        match result {
            Ok(success) => {
                self.succeeded.send_modify(|succeeded| *succeeded += 1);
                Some(success)
            }
            Err(failure) => {
                if !is_expected(&failure) {
                    let text = format!("{kind}: {}", failure.to_string());
                    self.unexpected.lock().unwrap().push(text);
                }
                None
            }
        }
    }
}
