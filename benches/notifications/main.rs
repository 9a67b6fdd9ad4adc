//! What a notification costs and how fast it is, from completion to recorded outcome, over a
//! PostgreSQL that flushes, on the processors of whoever runs it. It takes minutes; nothing is
//! asserted of times.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has failed, and says where"
)]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

mod latency;
mod meter;
mod one_process;
mod receiver;

#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/caller.rs"]
mod caller;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/cluster.rs"]
mod cluster;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/guardian.rs"]
mod guardian;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/postgres.rs"]
mod postgres;
#[path = "../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../../tests/crash/program.rs"]
mod program;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/server.rs"]
mod server;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../tests/crash/session.rs"]
mod session;

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};

use self::{
    caller::Caller,
    cluster::Cluster,
    latency::Latencies,
    meter::Meter,
    one_process::OneProcess,
    postgres::Postgres,
    receiver::{BareClient, Receiver, hanging},
};

/// How many webhooks hear of each delivery when rates are measured.
const FAN_OUT: usize = 10;
const LOAD: usize = 500;
/// How many are due at once to those who have been away, to all of them together.
const DUE: usize = 20_000;
/// How many of those are on their way at once: of each webhook an eighth of the 128 that a
/// dispatcher grants each of the two cores.
const PLACES: usize = FAN_OUT * 16;
/// How long shops take that do something before they answer.
const TAKES_TIME: Duration = Duration::from_millis(50);
/// At 20 a second.
const PACED: usize = 400;
const PACE: Duration = Duration::from_millis(50);
/// What goes before what is measured, so that nothing is done for the first time in it.
const WARM_UP: usize = 10;
/// How many are due to one that hangs.
const BACKLOG: usize = 10_000;
/// How many completions are under way at once.
const COMPLETERS: usize = 32;
/// As production would not: the commits' times are kept.
const SETTINGS: &str = "-c track_commit_timestamp=on";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        in_one_process().await;
        in_parts().await;
    });
}

/// Two cores, two gateways and two dispatchers.
async fn in_parts() {
    let Some(postgres) = Postgres::start_with(SETTINGS) else {
        return;
    };
    let url = postgres.url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let postgres = &cluster.postgres;
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = Receiver::start(Duration::ZERO).await;
    let hanging = hanging().await;

    let unheard = half_done(LOAD, &shop, &board).await;
    let quiet = half_done(WARM_UP + PACED, &shop, &board).await;
    let beside = half_done(PACED, &shop, &board).await;
    let load = half_done(WARM_UP + LOAD, &shop, &board).await;

    let before = Meter::read(&cluster).await;
    let time = complete(&unheard, &board).await;
    let completions = Meter::read(&cluster).await.since(&before);
    println!(
        "{LOAD} completions nobody hears of: {:.0}/s, {completions}",
        rate(LOAD, time)
    );

    shop.subscribe(receiver.url()).await;
    println!(
        "20/s, two of each part: {}",
        latencies(&quiet, &board, &receiver, postgres).await
    );

    shop.subscribe(&hanging).await;
    owe(postgres, BACKLOG, &hanging);
    hand_out(postgres, &hanging);
    paced(&beside, &board).await;
    println!(
        "20/s, beside {BACKLOG} due to one that hangs: {}",
        Latencies::of(&beside, &receiver, postgres)
    );
    postgres.sql(&format!(
        "UPDATE webhooks SET disabled_at = 1 WHERE url = '{hanging}';
         UPDATE notifications SET state = 'dropped' WHERE state = 'pending'"
    ));

    for _ in 1..FAN_OUT {
        shop.subscribe(receiver.url()).await;
    }
    complete(&load[..WARM_UP], &board).await;
    settled(postgres).await;
    let notifications = LOAD * FAN_OUT;
    let before = Meter::read(&cluster).await;
    let (begin, heard) = (Instant::now(), receiver.count());
    complete(&load[WARM_UP..], &board).await;
    receiver.has_heard(heard + notifications).await;
    let with_completions = rate(notifications, begin.elapsed());
    settled(postgres).await;
    let all = Meter::read(&cluster).await.since(&before);
    let own = all.since(&completions).of_a_thousand(notifications);
    println!(
        "{LOAD} completions, {FAN_OUT} notifications each: {with_completions:.0} \
         notifications/s; a thousand with their completions: {}; without: {own}",
        all.of_a_thousand(notifications)
    );

    catch_up(&cluster, &receiver).await;

    postgres.sql("UPDATE webhooks SET disabled_at = 1");
    let busy = Receiver::start(TAKES_TIME).await;
    for _ in 0..FAN_OUT {
        shop.subscribe(busy.url()).await;
    }
    // Those that have never answered have few places.
    owe(postgres, WARM_UP, busy.url());
    hand_out(postgres, busy.url());
    settled(postgres).await;
    catch_up(&cluster, &busy).await;
}

/// The all-in-one.
async fn in_one_process() {
    let Some(postgres) = Postgres::start_with(SETTINGS) else {
        return;
    };
    let platform = OneProcess::start(&postgres.url()).await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = Receiver::start(Duration::ZERO).await;

    let bare = BareClient::new(1);
    bare.send(receiver.url(), WARM_UP).await;
    let taken = bare.paced(&receiver, PACED, PACE).await;
    println!("20/s, a bare client that has nothing to write down: {taken}");

    let quiet = half_done(WARM_UP + PACED, &shop, &board).await;
    shop.subscribe(receiver.url()).await;
    println!(
        "20/s, one process: {}",
        latencies(&quiet, &board, &receiver, &postgres).await
    );
}

/// Hands out what is due to all who have been away, and compares with a client that does nothing
/// else, over as many connections as there may be requests at once.
async fn catch_up(cluster: &Cluster, receiver: &Receiver) {
    owe(&cluster.postgres, DUE / FAN_OUT, receiver.url());
    let before = Meter::read(cluster).await;
    let heard = receiver.count();
    hand_out(&cluster.postgres, receiver.url());
    // No bell rings: it may take a second until somebody looks.
    receiver.has_heard(heard + 1).await;
    let begin = Instant::now();
    receiver.has_heard(heard + DUE).await;
    let catching_up = rate(DUE, begin.elapsed());
    settled(&cluster.postgres).await;
    let all = Meter::read(cluster).await.since(&before);
    println!(
        "{DUE} due at once to {FAN_OUT} webhooks, answers take {:?}: {catching_up:.0} \
         notifications/s; a thousand: {}",
        receiver.takes(),
        all.of_a_thousand(DUE)
    );

    let bare = BareClient::new(PLACES);
    let bare = rate(DUE, bare.send(receiver.url(), DUE).await);
    println!(
        "a bare client over {PLACES} connections: {bare:.0}/s; catching up is \
         {:.0} % of it",
        100.0 * catching_up / bare
    );
}

/// Completes deliveries at 20 a second; how soon their receiver was told.
async fn latencies(
    deliveries: &[(String, String)],
    board: &Caller,
    receiver: &Receiver,
    postgres: &Postgres,
) -> Latencies {
    let (first, measured) = deliveries.split_at(WARM_UP);
    complete(first, board).await;
    settled(postgres).await;
    paced(measured, board).await;
    Latencies::of(measured, receiver, postgres)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// Deliveries of which the pickup is done: their IRI and dropoff.
async fn half_done(count: usize, shop: &Caller, board: &Caller) -> Vec<(String, String)> {
    stream::iter(0..count)
        .map(|_| async {
            let delivery = shop.create_delivery().await.unwrap();
            let text = |pointer| delivery.pointer(pointer).unwrap().as_str().unwrap();
            board.complete(text("/pickup/@id")).await.unwrap();
            (text("/@id").to_owned(), text("/dropoff/@id").to_owned())
        })
        .buffer_unordered(COMPLETERS)
        .collect()
        .await
}

/// Completes deliveries as fast as it can be done; how long that took.
async fn complete(deliveries: &[(String, String)], board: &Caller) -> Duration {
    let begin = Instant::now();
    stream::iter(deliveries)
        .for_each_concurrent(COMPLETERS, |(_, dropoff)| async move {
            board.complete(dropoff).await.unwrap();
        })
        .await;
    begin.elapsed()
}

async fn paced(deliveries: &[(String, String)], board: &Caller) {
    let mut tick = tokio::time::interval(PACE);
    for (_, dropoff) in deliveries {
        tick.tick().await;
        board.complete(dropoff).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Waits until nothing is owed to who hears of it.
async fn settled(postgres: &Postgres) {
    let owed = "SELECT count(*) FROM notifications WHERE state IN ('pending', 'leased')
         AND webhook_id NOT IN (SELECT id FROM webhooks WHERE disabled_at = 1)";
    while postgres.query(owed) != "0" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Writes what is due to each webhook of a shop that has been away; nobody looks for it yet.
fn owe(postgres: &Postgres, count: usize, url: &str) {
    postgres.sql(&format!(
        "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
             state, attempts, restarted_after, due_at, created_at)
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, 0, number, number
         FROM webhooks, generate_series(1, {count}) AS number WHERE url = '{url}'"
    ));
    // As the server would by itself, in a while.
    postgres.sql("ANALYZE notifications");
}

/// It is the turn of those webhooks.
fn hand_out(postgres: &Postgres, url: &str) {
    postgres.sql(&format!(
        "UPDATE webhooks SET next_due_at = 1 WHERE url = '{url}'"
    ));
}
