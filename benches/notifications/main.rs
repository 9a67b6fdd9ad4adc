//! Measures the cost and latency of notifications, from completion to recorded outcome, with a
//! PostgreSQL that flushes to disk. Takes minutes; asserts no times.
#![expect(
    clippy::unwrap_used,
    reason = "a panic fails the benchmark and shows where"
)]
#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]

mod bare_client;
mod latency;
mod processor_time;
mod receiver;
mod resource_usage;

#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/all_in_one.rs"]
mod all_in_one;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/caller.rs"]
mod caller;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/cluster.rs"]
mod cluster;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/disk.rs"]
mod disk;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/failure.rs"]
mod failure;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/postgres.rs"]
mod postgres;
#[path = "../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;
#[path = "../../tests/crash/program.rs"]
mod program;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/psql_session.rs"]
mod psql_session;
#[path = "../../tests/e2e/harness/reserved_addr.rs"]
mod reserved_addr;
#[path = "../../tests/e2e/harness/resource_script.rs"]
mod resource_script;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/server.rs"]
mod server;

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};

use self::{
    all_in_one::AllInOne,
    bare_client::Requests,
    caller::Caller,
    cluster::Cluster,
    latency::Latencies,
    postgres::Postgres,
    program::PROGRAMS,
    receiver::{Receiver, start_hanging_receiver},
    resource_usage::ResourceUsage,
};

/// The number of webhooks notified of each delivery when rates are measured.
const FAN_OUT: usize = 10;
/// The number of completions when rates are measured.
const LOAD: usize = 500;
/// The number of notifications due at once, for all webhooks together.
const DUE_AT_ONCE: usize = 20_000;
/// The maximum number of those in flight: 32 for each webhook. The two dispatchers grant each core a
/// capacity of 256, of which one healthy webhook may use an eighth; claims count what all cores have
/// in flight.
const MAX_IN_FLIGHT: usize = FAN_OUT * 32;
/// The response time of busy receivers.
const BUSY_RESPONSE_TIME: Duration = Duration::from_millis(50);
/// The number of completions at a constant rate.
const PACED: usize = 400;
/// Their interval: 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);
/// The number of completions before a measurement.
const WARM_UP: usize = 10;
/// The number of notifications due to a hanging receiver.
const BACKLOG: usize = 10_000;
/// The number of concurrent completions.
const CONCURRENCY: usize = 32;
/// PostgreSQL records commit times, from which latencies are measured.
const POSTGRES_SETTINGS: &str = "-c track_commit_timestamp=on";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        // `Requests::spawn` starts this program again, as the bare client.
        if let Some((url, requests)) = Requests::from_arguments() {
            return requests.send(&url).await;
        }
        measure_one_process().await;
        measure_cluster().await;
    });
}

/// Measures two cores, two gateways and two dispatchers.
async fn measure_cluster() {
    let Some(postgres) = Postgres::start_with(POSTGRES_SETTINGS) else {
        return;
    };
    let url = postgres.url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let postgres = &cluster.postgres;
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = Receiver::start(Duration::ZERO).await;
    let hanging = start_hanging_receiver().await;

    let without_webhooks = create_picked_up(LOAD, &shop, &board).await;
    let quiet = create_picked_up(WARM_UP + PACED, &shop, &board).await;
    let with_backlog = create_picked_up(PACED, &shop, &board).await;
    let load = create_picked_up(WARM_UP + LOAD, &shop, &board).await;

    let before = ResourceUsage::read(&cluster).await;
    let time = complete(&without_webhooks, &board).await;
    let completions = ResourceUsage::read(&cluster).await.minus(&before);
    println!(
        "{LOAD} completions without webhooks: {:.0}/s, {completions}",
        rate(LOAD, time)
    );

    shop.subscribe(receiver.url()).await;
    println!(
        "20 a second, two of each program: {}",
        measure_latencies(&quiet, &board, &receiver, postgres).await
    );

    shop.subscribe(&hanging).await;
    insert_backlog(postgres, BACKLOG, &hanging);
    make_due(postgres, &hanging);
    complete_paced(&with_backlog, &board).await;
    println!(
        "20 a second, with a backlog of {BACKLOG} for a hanging receiver: {}",
        Latencies::of(&with_backlog, &receiver, postgres)
    );
    postgres.sql(&format!(
        "UPDATE webhooks SET disabled_at = 1 WHERE url = '{hanging}';
         UPDATE notifications SET state = 'cancelled' WHERE state = 'pending'"
    ));

    for _ in 1..FAN_OUT {
        shop.subscribe(receiver.url()).await;
    }
    complete(&load[..WARM_UP], &board).await;
    wait_until_sent(postgres).await;
    let notifications = LOAD * FAN_OUT;
    let before = ResourceUsage::read(&cluster).await;
    let (started, count_before) = (Instant::now(), receiver.count());
    complete(&load[WARM_UP..], &board).await;
    receiver.wait_for_count(count_before + notifications).await;
    let with_completions = rate(notifications, started.elapsed());
    wait_until_sent(postgres).await;
    let all = ResourceUsage::read(&cluster).await.minus(&before);
    let without_completions = all.minus(&completions).per_thousand(notifications);
    println!(
        "{LOAD} completions, {FAN_OUT} notifications each: {with_completions:.0} \
         notifications/s; per thousand including completions: {}; excluding them: {}",
        all.per_thousand(notifications),
        without_completions
    );

    measure_catching_up(&cluster, &receiver).await;

    postgres.sql("UPDATE webhooks SET disabled_at = 1");
    let busy = Receiver::start(BUSY_RESPONSE_TIME).await;
    for _ in 0..FAN_OUT {
        shop.subscribe(busy.url()).await;
    }
    // A few notifications make the webhooks healthy: those of unknown health have little capacity.
    insert_backlog(postgres, WARM_UP, busy.url());
    make_due(postgres, busy.url());
    wait_until_sent(postgres).await;
    measure_catching_up(&cluster, &busy).await;
}

/// Measures the latency of the all-in-one, and that of a bare client.
async fn measure_one_process() {
    let Some(postgres) = Postgres::start_with(POSTGRES_SETTINGS) else {
        return;
    };
    let database = format!("--database-url={}", postgres.url());
    let platform = AllInOne::start_under(&PROGRAMS.delivery, |_| vec![database]).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = Receiver::start(Duration::ZERO).await;

    let bare = Requests {
        count: PACED,
        connections: 1,
        interval: INTERVAL,
    };
    let mut bare = bare.spawn(receiver.url());
    receiver.wait_for_count(PACED).await;
    assert!(bare.wait().unwrap().success());
    let baseline: Latencies = receiver.bare_latencies().into_iter().collect();
    println!("20 a second, a bare client without a database: {baseline}");

    let quiet = create_picked_up(WARM_UP + PACED, &shop, &board).await;
    shop.subscribe(receiver.url()).await;
    println!(
        "20 a second, one process: {}",
        measure_latencies(&quiet, &board, &receiver, &postgres).await
    );
}

/// Measures the rate at which a backlog of all webhooks is sent, and the rate of a bare client with
/// [`MAX_IN_FLIGHT`] connections.
async fn measure_catching_up(cluster: &Cluster, receiver: &Receiver) {
    insert_backlog(&cluster.postgres, DUE_AT_ONCE / FAN_OUT, receiver.url());
    let before = ResourceUsage::read(cluster).await;
    make_due(&cluster.postgres, receiver.url());
    // From the first response: cores poll for due webhooks up to a second later.
    let catching_up = receiver.rate_of_next(DUE_AT_ONCE).await;
    wait_until_sent(&cluster.postgres).await;
    let all = ResourceUsage::read(cluster).await.minus(&before);
    println!(
        "{DUE_AT_ONCE} due at once to {FAN_OUT} webhooks, response time {:?}: {catching_up:.0} \
         notifications/s; per thousand: {}",
        receiver.response_time(),
        all.per_thousand(DUE_AT_ONCE)
    );

    let bare = Requests {
        count: DUE_AT_ONCE,
        connections: MAX_IN_FLIGHT,
        interval: Duration::ZERO,
    };
    let mut process = bare.spawn(receiver.url());
    let bare = receiver.rate_of_next(DUE_AT_ONCE).await;
    assert!(process.wait().unwrap().success());
    println!(
        "a bare client over {MAX_IN_FLIGHT} connections: {bare:.0}/s; catching up is \
         {:.0} % of it",
        100.0 * catching_up / bare
    );
}

/// Completes deliveries at 20 a second. Returns the latencies of their notifications.
async fn measure_latencies(
    deliveries: &[(String, String)],
    board: &Caller,
    receiver: &Receiver,
    postgres: &Postgres,
) -> Latencies {
    let (first, measured) = deliveries.split_at(WARM_UP);
    complete(first, board).await;
    wait_until_sent(postgres).await;
    complete_paced(measured, board).await;
    Latencies::of(measured, receiver, postgres)
}

#[expect(clippy::cast_precision_loss, reason = "rounded for display")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Creates deliveries with a completed pickup. Returns their IRIs and dropoffs.
async fn create_picked_up(count: usize, shop: &Caller, board: &Caller) -> Vec<(String, String)> {
    stream::iter(0..count)
        .map(|_| async {
            let delivery = shop.create_delivery().await.unwrap();
            let text = |pointer| delivery.pointer(pointer).unwrap().as_str().unwrap();
            board.complete(text("/pickup/@id")).await.unwrap();
            (text("/@id").to_owned(), text("/dropoff/@id").to_owned())
        })
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await
}

/// Completes deliveries as fast as possible. Returns the total time.
async fn complete(deliveries: &[(String, String)], board: &Caller) -> Duration {
    let started = Instant::now();
    stream::iter(deliveries)
        .for_each_concurrent(CONCURRENCY, |(_, dropoff)| async move {
            board.complete(dropoff).await.unwrap();
        })
        .await;
    started.elapsed()
}

/// Completes deliveries at a constant rate, then waits two seconds for their notifications.
async fn complete_paced(deliveries: &[(String, String)], board: &Caller) {
    let mut tick = tokio::time::interval(INTERVAL);
    for (_, dropoff) in deliveries {
        tick.tick().await;
        board.complete(dropoff).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Waits until enabled webhooks have no pending or leased notifications.
async fn wait_until_sent(postgres: &Postgres) {
    let pending = "SELECT count(*) FROM notifications WHERE state IN ('pending', 'leased')
         AND webhook_id NOT IN (SELECT id FROM webhooks WHERE disabled_at = 1)";
    while postgres.query(pending) != "0" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Inserts due notifications for each webhook with this URL. No core claims them until [`make_due`]
/// makes the webhooks due.
fn insert_backlog(postgres: &Postgres, count: usize, url: &str) {
    postgres.sql(&format!(
        "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
             state, attempts, attempts_at_resend, due_at, created_at)
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, 0, number, number
         FROM webhooks, generate_series(1, {count}) AS number WHERE url = '{url}'"
    ));
    // The query planner needs statistics of these rows; autovacuum would collect them too late.
    postgres.sql("ANALYZE notifications");
}

/// Makes the webhooks with this URL due.
fn make_due(postgres: &Postgres, url: &str) {
    postgres.sql(&format!(
        "UPDATE webhooks SET next_due_at = 1 WHERE url = '{url}'"
    ));
}
