//! Mixed traffic with faults on both databases. Nothing acknowledged is lost, and every completion
//! is notified. In a long run, memory, descriptors and threads stay flat, and retention bounds the
//! tables: in a run of seconds there is nothing to see of that, and it is not asserted.

mod actors;
mod platform;
mod samples;
mod traffic;

use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use self::{platform::Platform, samples::Samples, traffic::Traffic};
use crate::{
    all_in_one::AllInOne,
    all_processors, checker,
    cluster::{Cluster, EXPIRE_LEASES},
    counting_receiver::CountingReceiver,
    postgres::Postgres,
    random::configured_duration,
};

/// The duration of a test, unless configured.
const DEFAULT_DURATION: Duration = Duration::from_secs(3);

/// From this duration on, growth is asserted. Retention runs every ten minutes or more often.
const LONG: Duration = Duration::from_mins(30);

/// The number of samples in a run.
const SAMPLES: u32 = 720;

/// The number of faults in a run. A short run is extended until each kind has occurred.
const FAULTS: u32 = 20;

/// The receiver refuses the first request of one notification in this many.
const REFUSED_INTERVAL: usize = 10;

/// The tables from which retention removes rows.
const TABLES_WITH_RETENTION: [&str; 5] = [
    "notifications",
    "attempts",
    "events",
    "idempotency_keys",
    "task_changes",
];

/// Its rows wait for a moment, so that there may be none in any sample.
const QUEUE: &str = "task_change_queue";

/// Tables of few rows that are updated often, and tables that keep all rows.
const OTHER_TABLES: [&str; 6] = [
    "webhooks",
    "event_counters",
    "event_sequencers",
    "deliveries",
    "tasks",
    "task_events",
];

/// Longer than the 5 min until a second retry: a notification may be refused once, and be sent
/// again while the receiver does not respond.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_all_in_one_loses_nothing_and_does_not_grow() {
    let _processors = all_processors().await;
    let mut platform = AllInOne::start().await;
    run(&mut platform).await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_services_lose_nothing_and_do_not_grow() {
    let _processors = all_processors().await;
    let Some(postgres) = Postgres::start_with("-c log_autovacuum_min_duration=0") else {
        return;
    };
    let url = postgres.url();
    let mut cluster = Cluster::start_on(postgres, &url).await;
    run(&mut cluster).await;
    // PostgreSQL forgets its counters of autovacuum when it is killed, but not its log.
    let vacuums = tables().map(|table| {
        let line = format!("automatic vacuum of table \"postgres.public.{table}\"");
        format!("{table} {}", cluster.postgres.count_logged(&line))
    });
    let vacuums: Vec<_> = vacuums.collect();
    crate::report(&format!("autovacuums: {}", vacuums.join(", ")));
}

async fn run<P: Platform>(platform: &mut P) {
    let duration = configured_duration().unwrap_or(DEFAULT_DURATION);
    let access = platform.access();
    let receiver = CountingReceiver::start().await;
    receiver.refuse_one_in(REFUSED_INTERVAL);
    access.shop().await.subscribe(receiver.url()).await;
    let mut traffic = Traffic::start(&access).await;
    let mut samples = Samples::create(P::SAMPLES_FILE);
    let started = Instant::now();

    let mut ticks = tokio::time::interval((duration / SAMPLES).max(Duration::from_millis(500)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let fault_interval = duration / FAULTS;
    let (mut faults, mut fault, mut last_fault) = (0, String::new(), started);
    while started.elapsed() < duration || faults < P::KINDS_OF_FAULTS {
        ticks.tick().await;
        let sample = sample(platform, &traffic, &receiver);
        samples.add(started.elapsed(), sample, &std::mem::take(&mut fault));
        age_rows(platform, fault_interval.max(Duration::from_secs(20)));
        // A receiver that does not respond is the only fault that lasts.
        if last_fault.elapsed() > fault_interval / 6 {
            receiver.set_responding(true);
        }
        // In the middle of each interval.
        if started.elapsed() > fault_interval * faults + fault_interval / 2 {
            let is_after_first_quarter = started.elapsed() > duration / 4;
            fault = platform
                .inject(faults, is_after_first_quarter, &traffic, &receiver)
                .await;
            last_fault = Instant::now();
            faults += 1;
        }
    }

    receiver.refuse_one_in(0);
    receiver.set_responding(true);
    let (acknowledged, mut log, unexpected) = traffic.finish().await;
    if duration < LONG {
        platform.query(EXPIRE_LEASES);
    }
    checker::wait_until_settled(|statement| platform.query(statement), SETTLE_TIMEOUT).await;
    let shop = access.shop().await;
    log.read_new(&shop).await.unwrap();
    let figures = checker::read_back(&acknowledged, &shop, &receiver, &log).await;
    crate::report(&format!(
        "{}: {} s, {faults} faults; requests that succeeded+failed: {}; notifications refused: {}; \
         {figures}; samples: {}",
        P::NAME,
        started.elapsed().as_secs(),
        traffic.counts(),
        receiver.received().refused.len(),
        samples.path().display()
    ));
    figures.assert_nothing_lost();
    assert_eq!(unexpected, [""; 0]);
    let endings = [" rss KiB", " descriptors", " threads", " rows"];
    let mut unseen = samples.unseen(&endings);
    unseen.retain(|column| *column != format!("{QUEUE} rows"));
    assert_eq!(unseen, [""; 0]);
    let growth = samples.growth(&limited_columns::<P>());
    if duration >= LONG {
        assert_eq!(growth, [""; 0]);
    }
}

/// The columns that must not grow.
fn limited_columns<P: Platform>() -> Vec<String> {
    let name = |subjects: &[&str], values: &[&str]| -> Vec<_> {
        let subjects = subjects.iter();
        subjects
            .flat_map(|subject| values.iter().map(move |value| format!("{subject} {value}")))
            .collect()
    };
    let of_processes = name(P::NEVER_KILLED, &["rss KiB", "descriptors", "threads"]);
    [
        of_processes,
        name(&TABLES_WITH_RETENTION, P::LIMITED_COLUMNS),
        name(&[QUEUE], P::LIMITED_COLUMNS),
    ]
    .concat()
}

fn tables() -> impl Iterator<Item = &'static str> {
    TABLES_WITH_RETENTION
        .into_iter()
        .chain([QUEUE])
        .chain(OTHER_TABLES)
}

/// The traffic, the processes and the database now.
fn sample(
    platform: &impl Platform,
    traffic: &Traffic,
    receiver: &CountingReceiver,
) -> Vec<(String, u64)> {
    let notified = receiver.received();
    let [succeeded, failed, created, done] = traffic.totals();
    let count = |count| u64::try_from(count).unwrap();
    let mut sample = [
        ("succeeded", succeeded),
        ("failed", failed),
        ("created", created),
        ("done", done),
        ("received", count(notified.total)),
        ("repeats", count(notified.repeats())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    for server in platform.processes() {
        sample.extend(samples::process(server));
    }
    let counts: Vec<_> = tables()
        .map(|table| format!("(SELECT count(*) FROM {table})"))
        .collect();
    let rows = platform.query(&format!("SELECT {}", counts.join(" || ' ' || ")));
    for (table, rows) in tables().zip(rows.split(' ')) {
        sample.push((format!("{table} rows"), rows.parse().unwrap()));
    }
    sample.extend(platform.storage());
    sample
}

/// Makes rows that are older than `age` older than their retention.
fn age_rows(platform: &impl Platform, age: Duration) {
    // Longer than every retention.
    let month = 31 * 24 * 3600 * 1_000_000_i64;
    let now = delivery::Clock::system().now().as_microsecond();
    let oldest = now - month;
    let newest = now - i64::try_from(age.as_micros()).unwrap();
    for (table, column) in [
        ("notifications", "finished_at"),
        ("events", "created_at"),
        ("idempotency_keys", "created_at"),
    ] {
        platform.query(&format!(
            "UPDATE {table} SET {column} = {column} - {month}
             WHERE {column} > {oldest} AND {column} < {newest}"
        ));
    }
}
