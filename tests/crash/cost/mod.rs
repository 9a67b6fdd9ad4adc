//! What a notification costs and how fast it is, from completion to recorded outcome: two cores,
//! two dispatchers and a PostgreSQL that flushes, on the processors of whoever runs it. Nothing
//! is asserted of times.

mod latency;
mod meter;
mod receiver;

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};

use self::{
    latency::Latencies,
    meter::Meter,
    receiver::{Receiver, bare_client, hanging},
};
use crate::{ONE_AT_A_TIME, caller::Caller, cluster::Cluster, postgres::Postgres, say};

/// How many webhooks hear of each delivery when rates are measured.
const FAN_OUT: usize = 10;
const LOAD: usize = 500;
/// How many are due at once to those who have been away, to all of them together.
const DUE: usize = 20_000;
/// At 20 a second.
const PACED: usize = 200;
const PACE: Duration = Duration::from_millis(50);
/// How many are due to one that hangs.
const BACKLOG: usize = 10_000;
/// How many completions are under way at once.
const COMPLETERS: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for minutes, on every processor there is"]
async fn cost_of_notifications() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(postgres) = Postgres::start_with("-c track_commit_timestamp=on") else {
        return;
    };
    let url = postgres.url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let shop = cluster.shop().await;
    let board = cluster.dispatch_board().await;
    let receiver = Receiver::start().await;
    let hanging = hanging().await;

    let unheard = half_done(LOAD, &shop, &board).await;
    let quiet = half_done(PACED + 10, &shop, &board).await;
    let beside = half_done(PACED, &shop, &board).await;
    let load = half_done(LOAD + 10, &shop, &board).await;

    let before = Meter::read(&cluster).await;
    let time = complete(&unheard, &board).await;
    let completions = Meter::read(&cluster).await.since(&before);
    say(&format!(
        "{LOAD} completions nobody hears of: {:.0}/s, {completions}",
        rate(LOAD, time)
    ));

    shop.subscribe(receiver.url()).await;
    complete(&quiet[..10], &board).await;
    settled(&cluster.postgres).await;
    paced(&quiet[10..], &board).await;
    let alone = Latencies::of(&quiet[10..], &receiver, &cluster.postgres);
    say(&format!("paced at 20/s, alone: {alone}"));

    shop.subscribe(&hanging).await;
    owe(&cluster.postgres, BACKLOG, &hanging);
    hand_out(&cluster.postgres, &hanging);
    paced(&beside, &board).await;
    let with_backlog = Latencies::of(&beside, &receiver, &cluster.postgres);
    say(&format!(
        "paced at 20/s, beside {BACKLOG} due to one that hangs: {with_backlog}"
    ));
    cluster.postgres.sql(&format!(
        "UPDATE webhooks SET disabled_at = 1 WHERE url = '{hanging}';
         UPDATE notifications SET state = 'dropped' WHERE state = 'pending'"
    ));

    for _ in 1..FAN_OUT {
        shop.subscribe(receiver.url()).await;
    }
    complete(&load[..10], &board).await;
    settled(&cluster.postgres).await;
    let notifications = LOAD * FAN_OUT;
    let before = Meter::read(&cluster).await;
    let (begin, heard) = (Instant::now(), receiver.count());
    complete(&load[10..], &board).await;
    receiver.has_heard(heard + notifications).await;
    let with_completions = rate(notifications, begin.elapsed());
    settled(&cluster.postgres).await;
    let all = Meter::read(&cluster).await.since(&before);
    let own = all.since(&completions).of_a_thousand(notifications);
    say(&format!(
        "{LOAD} completions, {FAN_OUT} notifications each: {with_completions:.0} \
         notifications/s, {all}; of them a thousand notifications: {own}"
    ));

    owe(&cluster.postgres, DUE / FAN_OUT, receiver.url());
    let before = Meter::read(&cluster).await;
    let (begin, heard) = (Instant::now(), receiver.count());
    hand_out(&cluster.postgres, receiver.url());
    receiver.has_heard(heard + DUE).await;
    let catching_up = rate(DUE, begin.elapsed());
    settled(&cluster.postgres).await;
    let all = Meter::read(&cluster).await.since(&before);
    say(&format!(
        "{DUE} due at once to {FAN_OUT} webhooks: {catching_up:.0} notifications/s; a thousand: {}",
        all.of_a_thousand(DUE)
    ));

    let connections = receiver.connections();
    let bare = bare_client(receiver.url(), DUE, connections).await;
    say(&format!(
        "a bare client over as many connections, {connections}: {bare:.0}/s; catching up is \
         {:.0} % of it",
        100.0 * catching_up / bare
    ));
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
