//! Load: creators of deliveries, which never pause, completers of both tasks at once, and a journal of
//! the successful responses.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    caller::{Caller, iri},
    failure::Failure,
};

/// The time in which the platform must serve again after a fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(40);

/// The number of deliveries that may wait for a completer.
const QUEUE_CAPACITY: usize = 32;

/// One delivery in this many gets only its pickup completed: no completion may be reported for it.
const UNFINISHED_INTERVAL: usize = 4;

/// The acknowledged writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    /// The idempotency key of each delivery, which is its comment too, and the delivery as answered with
    /// 201.
    pub(crate) created: Vec<(String, Value)>,
    /// Tasks whose completion was requested.
    pub(crate) requested: BTreeSet<String>,
    /// Tasks whose completion was answered with 200.
    pub(crate) done: BTreeSet<String>,
}

impl Acknowledged {
    /// Adds a created delivery.
    pub(crate) fn created(&mut self, comment: &str, delivery: Value) {
        self.created.push((comment.to_owned(), delivery));
    }

    /// The IRIs of the deliveries.
    pub(crate) fn deliveries(&self) -> BTreeSet<&str> {
        self.created
            .iter()
            .map(|(_, delivery)| iri(delivery))
            .collect()
    }

    /// The deliveries whose two tasks were acknowledged as done, by IRI.
    pub(crate) fn completed(&self) -> BTreeSet<String> {
        self.deliveries_with_both_tasks_in(&self.done)
    }

    /// The deliveries that may be completed: the completion of both tasks was requested.
    pub(crate) fn completable(&self) -> BTreeSet<String> {
        self.deliveries_with_both_tasks_in(&self.requested)
    }

    fn deliveries_with_both_tasks_in(&self, tasks: &BTreeSet<String>) -> BTreeSet<String> {
        let contains = |task: &Value| tasks.contains(iri(task));
        self.created
            .iter()
            .map(|(_, delivery)| delivery)
            .filter(|delivery| contains(&delivery["pickup"]) && contains(&delivery["dropoff"]))
            .map(|delivery| iri(delivery).to_owned())
            .collect()
    }
}

/// Load on a platform until [`Load::finish`].
pub(crate) struct Load {
    running: JoinSet<()>,
    finish: CancellationToken,
    journal: Arc<Journal>,
}

#[derive(Default)]
struct Journal {
    acknowledged: Mutex<Acknowledged>,
    progress: watch::Sender<Progress>,
    failures: Mutex<Vec<Failure>>,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    /// The number of successful requests.
    succeeded: u64,
    /// The number of failed requests.
    failed: u64,
    /// When the latest successful request was sent.
    last_sent: Option<Instant>,
    /// The longest time from request to success.
    slowest: Duration,
}

impl Load {
    /// Starts `workers` creators and as many completers.
    pub(crate) fn start(workers: usize, shop: &Caller, dispatch_board: &Caller) -> Self {
        let journal = Arc::new(Journal::default());
        let finish = CancellationToken::new();
        let mut running = JoinSet::new();
        let (created, queue) = mpsc::channel(QUEUE_CAPACITY);
        let queue = Arc::new(tokio::sync::Mutex::new(queue));
        for _ in 0..workers {
            running.spawn(create(
                journal.clone(),
                finish.clone(),
                shop.clone(),
                created.clone(),
            ));
            running.spawn(complete(
                journal.clone(),
                dispatch_board.clone(),
                queue.clone(),
            ));
        }
        Self {
            running,
            finish,
            journal,
        }
    }

    /// The acknowledged writes so far.
    pub(crate) fn acknowledged(&self) -> Acknowledged {
        self.journal.acknowledged.lock().unwrap().clone()
    }

    /// The longest time that a successful request took.
    pub(crate) fn slowest_success(&self) -> Duration {
        self.journal.progress.borrow().slowest
    }

    /// Waits for this many more successful requests.
    pub(crate) async fn wait_for_successes(&self, more: u64) {
        self.wait_for_more(more, "successes", |progress| progress.succeeded)
            .await;
    }

    /// Waits for this many more failed requests.
    pub(crate) async fn wait_for_failures(&self, more: u64) {
        self.wait_for_more(more, "failures", |progress| progress.failed)
            .await;
    }

    async fn wait_for_more(&self, more: u64, what: &str, count: fn(&Progress) -> u64) {
        let mut progress = self.journal.progress.subscribe();
        let enough = count(&progress.borrow()) + more;
        let enough = progress.wait_for(|progress| count(progress) >= enough);
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, enough).await.is_ok();
        assert!(
            in_time,
            "fewer than {more} more {what}: {}",
            self.last_failures()
        );
    }

    /// Waits for the success of a request sent after `instant`; returns the time from `instant` to
    /// then.
    pub(crate) async fn first_success_after(&self, instant: Instant) -> Duration {
        let mut progress = self.journal.progress.subscribe();
        let success = progress.wait_for(|progress| progress.last_sent > Some(instant));
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, success)
            .await
            .is_ok();
        assert!(in_time, "no request succeeds: {}", self.last_failures());
        instant.elapsed()
    }

    /// Stops the creators and waits until the completers have got an acknowledgement of every
    /// completion; returns the acknowledged writes and the failures.
    pub(crate) async fn finish(mut self) -> (Acknowledged, Vec<Failure>) {
        self.finish.cancel();
        let drained = async {
            while self
                .running
                .join_next()
                .await
                .transpose()
                .unwrap()
                .is_some()
            {}
        };
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, drained)
            .await
            .is_ok();
        assert!(
            in_time,
            "not all created deliveries are completed: {}",
            self.last_failures()
        );
        let acknowledged = std::mem::take(&mut *self.journal.acknowledged.lock().unwrap());
        assert_eq!(acknowledged.done, acknowledged.requested);
        let failures = std::mem::take(&mut *self.journal.failures.lock().unwrap());
        (acknowledged, failures)
    }

    fn last_failures(&self) -> String {
        let failures = self.journal.failures.lock().unwrap();
        let last = failures.iter().rev().take(3).map(Failure::to_string);
        format!(
            "{} failures, {:?}",
            failures.len(),
            last.collect::<Vec<_>>()
        )
    }
}

async fn create(
    journal: Arc<Journal>,
    finish: CancellationToken,
    shop: Caller,
    created: mpsc::Sender<Value>,
) {
    while !finish.is_cancelled() {
        let delivery = create_one(&journal, &shop).await;
        created.send(delivery).await.unwrap();
    }
}

/// Retries until it succeeds, each time with the same key, so that a delivery whose response was
/// lost is not created again.
async fn create_one(journal: &Journal, shop: &Caller) -> Value {
    let key = Uuid::now_v7().to_string();
    loop {
        let sent = Instant::now();
        match shop.create_delivery_with_key(&key).await {
            Ok(delivery) => {
                journal
                    .acknowledged
                    .lock()
                    .unwrap()
                    .created(&key, delivery.clone());
                journal.succeeded(sent);
                return delivery;
            }
            Err(failure) => journal.failed(failure).await,
        }
    }
}

async fn complete(
    journal: Arc<Journal>,
    dispatch_board: Caller,
    queue: Arc<tokio::sync::Mutex<mpsc::Receiver<Value>>>,
) {
    for number in 1.. {
        let Some(delivery) = queue.lock().await.recv().await else {
            return;
        };
        let pickup = complete_task(&journal, &dispatch_board, iri(&delivery["pickup"]));
        if number % UNFINISHED_INTERVAL == 0 {
            pickup.await;
        } else {
            let dropoff = complete_task(&journal, &dispatch_board, iri(&delivery["dropoff"]));
            tokio::join!(pickup, dropoff);
        }
    }
}

/// Retries until it succeeds.
async fn complete_task(journal: &Journal, dispatch_board: &Caller, task: &str) {
    journal
        .acknowledged
        .lock()
        .unwrap()
        .requested
        .insert(task.to_owned());
    loop {
        let sent = Instant::now();
        match dispatch_board.complete(task).await {
            Ok(done) => {
                assert_eq!((iri(&done), &done["status"]), (task, &Value::from("DONE")),);
                let mut acknowledged = journal.acknowledged.lock().unwrap();
                acknowledged.done.insert(task.to_owned());
                drop(acknowledged);
                journal.succeeded(sent);
                return;
            }
            Err(failure) => journal.failed(failure).await,
        }
    }
}

impl Journal {
    fn succeeded(&self, sent: Instant) {
        self.progress.send_modify(|progress| {
            progress.succeeded += 1;
            progress.last_sent = progress.last_sent.max(Some(sent));
            progress.slowest = progress.slowest.max(sent.elapsed());
        });
    }

    async fn failed(&self, failure: Failure) {
        self.failures.lock().unwrap().push(failure);
        self.progress.send_modify(|progress| progress.failed += 1);
        // An immediate retry would take processor time from the recovering platform.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
