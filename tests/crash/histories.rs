//! Random commands of concurrent clients while processes are killed: the history of each object is
//! linearizable.
//!
//! A history holds operations: each a command with its invocation and its answer, or without an answer
//! if the connection broke or the platform was unavailable. `linearizability` compares it
//! with a sequential model of what the documents guarantee.

mod answer;
mod delivery;
mod idempotency_key;
mod linearizability;
mod one_instant;
mod platform;
mod quote;
mod register;
mod time_slot;
mod workload;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    delivery::Delivery,
    idempotency_key::IdempotencyKey,
    platform::Platform,
    quote::Quote,
    time_slot::Slot,
    workload::{CONCURRENT_OBJECTS, Checked, Pickers, Workload, run},
};
use crate::{
    all_in_one::AllInOne,
    backup::path_str,
    caller::Caller,
    cluster::Cluster,
    fault::{Fault, Faults},
    one_processor,
    random::{Random, configured_duration},
};

/// The duration of a test, unless configured.
const DEFAULT_DURATION: Duration = Duration::from_secs(8);

/// The time in which enough must have happened to compare.
const MAX_DURATION: Duration = Duration::from_mins(1);

/// The maximum number of answers between two faults.
const MAX_ANSWERS_BETWEEN_FAULTS: u64 = 120;

/// The number of answers before a fault is repaired.
const ANSWERS_DURING_FAULT: u64 = 10;

/// The least that a test must have seen: faults, answers, operations without an answer, and
/// operations of each of [`KINDS`].
const MIN_FAULTS: usize = 8;
const MIN_ANSWERS: u64 = 400;
const MIN_UNKNOWN: usize = 20;
const MIN_OF_A_KIND: usize = 3;

/// Commands with the answers that a test must have seen; `unknown`: without an answer.
const KINDS: [&str; 21] = [
    "delivery: cancel, done",
    "delivery: cancel, task_state",
    "delivery: complete, done",
    "delivery: complete, task_state",
    "delivery: read delivery, done",
    "delivery: read task, done",
    "key: create, done",
    "key: create, idempotency_key_reused",
    "key: create, unknown",
    "key: list, done",
    "quote: assert, done",
    "quote: assert, price_used",
    "quote: cancel, done",
    "quote: create, done",
    "quote: create, price_used",
    "quote: create, unknown",
    "quote: list, done",
    "slot: assert, done",
    "slot: cancel, done",
    "slot: create, done",
    "slot: list, done",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_the_all_in_one_are_linearizable_when_it_is_killed() {
    let _processor = one_processor().await;
    let mut random = Random::seeded();
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    apply_time_slot(&platform, &shop).await;
    let mut test = HistoryTest::start(shop, board, &mut random).await;

    while test.is_time_left() {
        test.wait_before_fault(&mut random).await;
        platform.server.kill();
        platform.server.start().await;
        test.faults += 1;
    }

    test.finish("SQLite").await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

/// Replaces the time slots of the demo shop.
async fn apply_time_slot(platform: &AllInOne, shop: &Caller) {
    let client = shop.get("/api/me").await.unwrap();
    let store = client["store"].as_str().unwrap();
    let file = platform.directory.path().join("time-slot");
    std::fs::write(&file, time_slot::DEFINITION).unwrap();
    let apply = ["time-slots", "apply", path_str(&file), "--store", store];
    assert!(platform.operator(&apply).status.success());
}

/// Every fault occurs at least once, in random order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_the_services_are_linearizable_when_any_of_them_is_killed() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    cluster.apply_time_slot(time_slot::DEFINITION);
    let mut random = Random::seeded();
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let mut test = HistoryTest::start(shop, board, &mut random).await;

    let mut faults = Faults::of(Fault::OF_REQUESTS.to_vec());
    while test.is_time_left() {
        test.wait_before_fault(&mut random).await;
        let fault = faults.next(&mut random);
        let wait = async |_| {
            let answer_counts = &test.platform.answer_counts;
            answer_counts.wait_for_answers(ANSWERS_DURING_FAULT).await;
        };
        fault.inject(&mut cluster, wait).await;
        test.faults += 1;
    }

    test.finish("PostgreSQL").await;
}

/// Clients of objects of every kind.
struct HistoryTest {
    platform: Arc<Platform>,
    running: JoinSet<Checked>,
    finish: CancellationToken,
    faults: usize,
    started: Instant,
}

impl HistoryTest {
    async fn start(shop: Caller, board: Caller, random: &mut Random) -> Self {
        let mut test = Self {
            platform: Arc::new(Platform::new(shop, board).await),
            running: JoinSet::new(),
            finish: CancellationToken::new(),
            faults: 0,
            started: Instant::now(),
        };
        test.use_objects::<Delivery>(random);
        test.use_objects::<IdempotencyKey>(random);
        test.use_objects::<Slot>(random);
        test.use_objects::<Quote>(random);
        test
    }

    fn use_objects<W: Workload + 'static>(&mut self, random: &mut Random) {
        let pickers = [(); CONCURRENT_OBJECTS].map(|()| Pickers::draw(random));
        let using = run::<W>(self.platform.clone(), pickers, self.finish.clone());
        self.running.spawn(using);
    }

    /// Whether the duration has not passed, or too little has happened yet.
    fn is_time_left(&self) -> bool {
        let elapsed = self.started.elapsed();
        elapsed < configured_duration().unwrap_or(DEFAULT_DURATION)
            || (!self.is_enough() && elapsed < MAX_DURATION)
    }

    fn is_enough(&self) -> bool {
        let answer_counts = &self.platform.answer_counts;
        self.faults >= MIN_FAULTS
            && answer_counts.answered() >= MIN_ANSWERS
            && answer_counts.unknown() >= MIN_UNKNOWN
            && answer_counts.missing(&KINDS, MIN_OF_A_KIND).is_empty()
    }

    async fn wait_before_fault(&self, random: &mut Random) {
        let answers = 1 + random.below(MAX_ANSWERS_BETWEEN_FAULTS);
        self.platform.answer_counts.wait_for_answers(answers).await;
    }

    /// Checks every history, and that there was something to check.
    async fn finish(mut self, database: &str) {
        self.finish.cancel();
        let checked = std::mem::take(&mut self.running).join_all().await;
        let sum = |count: fn(&Checked) -> usize| checked.iter().map(count).sum::<usize>();
        let operations = sum(|checked| checked.operations);
        let overlapping = sum(|checked| checked.overlapping);
        let answer_counts = &self.platform.answer_counts;
        let kinds: Vec<_> = checked.iter().map(Checked::to_string).collect();
        crate::report(&format!(
            "{database}, {} faults, {operations} operations ({overlapping} overlap, {} without an \
             answer); histories: {}",
            self.faults,
            answer_counts.unknown(),
            kinds.join(", "),
        ));
        let violations = checked.iter().flat_map(|checked| &checked.violations);
        let violations: Vec<_> = violations.map(String::as_str).collect();
        assert!(violations.is_empty(), "{}", violations.join("\n\n"));
        assert!(2 * overlapping > operations);
        let missing = answer_counts.missing(&KINDS, MIN_OF_A_KIND);
        assert!(self.is_enough(), "{missing:?} of {answer_counts}");
    }
}
