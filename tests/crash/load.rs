//! Shops that create without pause, couriers who complete both tasks at once, and a journal of
//! what they were promised.

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

use crate::caller::{Caller, Failure, iri};

/// How long the platform may take to serve again after it was hit.
const RECOVERY: Duration = Duration::from_secs(40);

/// How many deliveries may wait for a courier.
const WAITING: usize = 32;

/// What was acknowledged. Every member holds IRIs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledged {
    /// Deliveries, by a 201.
    pub(crate) deliveries: BTreeSet<String>,
    /// The tasks of these deliveries.
    pub(crate) tasks: BTreeSet<String>,
    /// Tasks, by a 200 to their completion.
    pub(crate) done: BTreeSet<String>,
    /// Deliveries whose tasks were both done.
    pub(crate) completed: BTreeSet<String>,
}

impl Acknowledged {
    /// Notes a delivery, whose tasks are to be done.
    pub(crate) fn created(&mut self, delivery: &Value) {
        self.deliveries.insert(iri(delivery).to_owned());
        for task in ["pickup", "dropoff"] {
            self.tasks.insert(iri(&delivery[task]).to_owned());
        }
    }
}

/// Load on a platform until it is told to finish.
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
    /// Requests acknowledged.
    count: u64,
    /// Requests that failed.
    failed: u64,
    /// When the youngest of them was sent.
    sent: Option<Instant>,
}

impl Load {
    /// Starts as many creators and as many completers.
    pub(crate) fn start(workers: usize, shop: &Caller, dispatch_board: &Caller) -> Self {
        let journal = Arc::new(Journal::default());
        let finish = CancellationToken::new();
        let mut running = JoinSet::new();
        let (created, waiting) = mpsc::channel(WAITING);
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        for _ in 0..workers {
            running.spawn(create(
                (journal.clone(), finish.clone()),
                shop.clone(),
                created.clone(),
            ));
            running.spawn(complete(
                journal.clone(),
                dispatch_board.clone(),
                waiting.clone(),
            ));
        }
        Self {
            running,
            finish,
            journal,
        }
    }

    /// Waits until so many requests more are acknowledged.
    pub(crate) async fn acknowledges(&self, more: u64) {
        let mut progress = self.journal.progress.subscribe();
        let enough = progress.borrow().count + more;
        let enough = progress.wait_for(|progress| progress.count >= enough);
        let in_time = tokio::time::timeout(RECOVERY, enough).await.is_ok();
        assert!(in_time, "{} more did not come: {}", more, self.last());
    }

    /// Waits until so many requests more have failed.
    pub(crate) async fn refuses(&self, more: u64) {
        let mut progress = self.journal.progress.subscribe();
        let enough = progress.borrow().failed + more;
        let enough = progress.wait_for(|progress| progress.failed >= enough);
        let in_time = tokio::time::timeout(RECOVERY, enough).await.is_ok();
        assert!(in_time, "{more} more did not fail: {}", self.last());
    }

    /// Waits until a request is acknowledged that was sent after an instant. How long after it
    /// that is.
    pub(crate) async fn first_success_after(&self, instant: Instant) -> Duration {
        let mut progress = self.journal.progress.subscribe();
        let success = progress.wait_for(|progress| progress.sent > Some(instant));
        let in_time = tokio::time::timeout(RECOVERY, success).await.is_ok();
        assert!(in_time, "nothing succeeds any more: {}", self.last());
        instant.elapsed()
    }

    /// Lets the creators end and the completers complete what was created; gives what was
    /// acknowledged, and why the rest was not.
    pub(crate) async fn finish(mut self) -> (Acknowledged, Vec<Failure>) {
        self.finish.cancel();
        let ended = async {
            while self
                .running
                .join_next()
                .await
                .transpose()
                .unwrap()
                .is_some()
            {}
        };
        let in_time = tokio::time::timeout(RECOVERY, ended).await.is_ok();
        assert!(
            in_time,
            "what was created is not completed: {}",
            self.last()
        );
        let acknowledged = std::mem::take(&mut *self.journal.acknowledged.lock().unwrap());
        let failures = std::mem::take(&mut *self.journal.failures.lock().unwrap());
        (acknowledged, failures)
    }

    fn last(&self) -> String {
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
    (journal, finish): (Arc<Journal>, CancellationToken),
    shop: Caller,
    created: mpsc::Sender<Value>,
) {
    while !finish.is_cancelled() {
        let delivery = create_one(&journal, &shop).await;
        created.send(delivery).await.unwrap();
    }
}

/// Tries until it succeeds, each time with the same key: what was created although nobody was
/// told is not created again.
async fn create_one(journal: &Journal, shop: &Caller) -> Value {
    let key = Uuid::now_v7().to_string();
    loop {
        let sent = Instant::now();
        match shop.create_delivery_once(&key).await {
            Ok(delivery) => {
                journal.created(&delivery);
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
    waiting: Arc<tokio::sync::Mutex<mpsc::Receiver<Value>>>,
) {
    loop {
        let Some(delivery) = waiting.lock().await.recv().await else {
            return;
        };
        tokio::join!(
            complete_task(&journal, &dispatch_board, iri(&delivery["pickup"])),
            complete_task(&journal, &dispatch_board, iri(&delivery["dropoff"])),
        );
        let mut acknowledged = journal.acknowledged.lock().unwrap();
        acknowledged.completed.insert(iri(&delivery).to_owned());
    }
}

/// Tries until it succeeds.
async fn complete_task(journal: &Journal, dispatch_board: &Caller, task: &str) {
    loop {
        let sent = Instant::now();
        match dispatch_board.complete(task).await {
            Ok(done) => {
                assert_eq!(done["status"], "DONE");
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
    fn created(&self, delivery: &Value) {
        self.acknowledged.lock().unwrap().created(delivery);
    }

    fn succeeded(&self, sent: Instant) {
        self.progress.send_modify(|progress| {
            progress.count += 1;
            progress.sent = progress.sent.max(Some(sent));
        });
    }

    async fn failed(&self, failure: Failure) {
        self.failures.lock().unwrap().push(failure);
        self.progress.send_modify(|progress| progress.failed += 1);
        // One who comes back at once would only keep the processors from those who mend.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
