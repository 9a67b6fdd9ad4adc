//! What a notification costs and how fast it is, from completion to recorded outcome: two cores,
//! two dispatchers and a PostgreSQL that flushes. Nothing is asserted of times; run it with
//! `DELIVERY_COST=1 cargo test --release --test crash cost -- --nocapture`.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{ONE_AT_A_TIME, caller::Caller, cluster::Cluster, postgres::Postgres, say};

/// Set to `1` to measure.
const SWITCH: &str = "DELIVERY_COST";

/// How many webhooks hear of each delivery when rates are measured.
const FAN_OUT: usize = 10;
const LOAD: usize = 500;
/// At 20 a second.
const PACED: usize = 200;
const PACE: Duration = Duration::from_millis(50);
const BACKLOG: usize = 10_000;
const CONNECTIONS: usize = 32;

/// After so long, PostgreSQL's idle sessions have told what they did.
const STATISTICS: Duration = Duration::from_secs(12);

/// When each delivery was first heard of, in microseconds since 1970; and how many came.
type Arrivals = Arc<Mutex<(HashMap<String, i64>, usize)>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cost_of_notifications() {
    if std::env::var_os(SWITCH).is_none_or(|value| value != "1") {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let postgres = &mut cluster.postgres;
    postgres.sql("ALTER SYSTEM SET track_commit_timestamp = on");
    postgres.stop_immediately();
    postgres.start_again();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let shop = cluster.shop().await;
    let board = cluster.dispatch_board().await;
    let (receiver, arrivals) = receiver().await;
    let hanging = hanging().await;

    let unheard = half_done(LOAD, &shop, &board).await;
    let quiet = half_done(PACED + 10, &shop, &board).await;
    let beside = half_done(PACED, &shop, &board).await;
    let load = half_done(LOAD + 10, &shop, &board).await;

    let before = Meter::read(&cluster).await;
    complete(&unheard, &board).await;
    let completions = Meter::read(&cluster).await.since(&before);

    shop.subscribe(&receiver).await;
    complete(&quiet[..10], &board).await;
    settled(&cluster.postgres).await;
    paced(&quiet[10..], &board).await;
    let alone = Latencies::of(&quiet[10..], &arrivals, &cluster.postgres);

    shop.subscribe(&hanging).await;
    cluster.postgres.sql(&backlog(&hanging));
    paced(&beside, &board).await;
    let with_backlog = Latencies::of(&beside, &arrivals, &cluster.postgres);
    cluster.postgres.sql(&format!(
        "UPDATE webhooks SET disabled_at = 1 WHERE url = '{hanging}';
         UPDATE notifications SET state = 'dropped' WHERE state = 'pending'"
    ));

    for _ in 1..FAN_OUT {
        shop.subscribe(&receiver).await;
    }
    complete(&load[..10], &board).await;
    settled(&cluster.postgres).await;
    let notifications = LOAD * FAN_OUT;
    let before = Meter::read(&cluster).await;
    let (begin, heard) = (Instant::now(), arrivals.lock().unwrap().1);
    complete(&load[10..], &board).await;
    while arrivals.lock().unwrap().1 < heard + notifications {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let all_heard = begin.elapsed();
    settled(&cluster.postgres).await;
    let all = Meter::read(&cluster).await.since(&before);
    let bare = bare_client(&receiver, notifications).await;

    let rate = rate(notifications, all_heard);
    say(&format!("paced at 20/s, alone: {alone}"));
    say(&format!(
        "paced at 20/s, beside {BACKLOG} due to one that hangs: {with_backlog}"
    ));
    say(&format!(
        "{LOAD} completions nobody hears of: {completions}"
    ));
    say(&format!(
        "{LOAD} completions, {FAN_OUT} notifications each: {all}"
    ));
    let own = all.minus(&completions);
    say(&format!(
        "a thousand notifications: {}",
        own.of_a_thousand(notifications)
    ));
    say(&format!(
        "{rate:.0} notifications/s with their completions; a bare client {bare:.0}/s: {:.0} %",
        100.0 * rate / bare
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
        .buffer_unordered(CONNECTIONS)
        .collect()
        .await
}

async fn complete(deliveries: &[(String, String)], board: &Caller) {
    stream::iter(deliveries)
        .for_each_concurrent(CONNECTIONS, |(_, dropoff)| async move {
            board.complete(dropoff).await.unwrap();
        })
        .await;
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

/// What is due to a webhook of a shop that has been away.
fn backlog(url: &str) -> String {
    format!(
        "INSERT INTO notifications
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, number, NULL, NULL, number, NULL
         FROM webhooks, generate_series(1, {BACKLOG}) AS number WHERE url = '{url}';
         UPDATE webhooks SET next_due_at = 1 WHERE url = '{url}'"
    )
}

/// How long after the commit of a completion its receiver was told, in milliseconds.
struct Latencies(Vec<f64>);

impl Latencies {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn of(deliveries: &[(String, String)], arrivals: &Arrivals, postgres: &Postgres) -> Self {
        // A task is written once: with the completion.
        let committed = postgres.query(
            "SELECT delivery_id, (extract(epoch FROM pg_xact_commit_timestamp(xmin))
                 * 1000000)::bigint FROM tasks WHERE kind = 'dropoff'",
        );
        let committed: HashMap<_, i64> = committed
            .lines()
            .filter_map(|line| line.split_once('|'))
            .filter_map(|(id, at)| Some((id, at.parse().ok()?)))
            .collect();
        let arrivals = arrivals.lock().unwrap();
        let mut latencies: Vec<_> = deliveries
            .iter()
            .map(|(iri, _)| {
                let id = iri.rsplit('/').next().unwrap();
                let arrived = arrivals.0.get(iri).expect("it was told");
                (arrived - committed[id]) as f64 / 1000.0
            })
            .collect();
        latencies.sort_by(f64::total_cmp);
        Self(latencies)
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percentile = |percent| self.0[self.0.len() * percent / 100];
        let (half, most) = (percentile(50), percentile(99));
        write!(f, "commit to receiver p50 {half:.2} ms, p99 {most:.2} ms")
    }
}

/// What was used so far.
#[derive(Clone, Copy)]
struct Meter {
    cores: f64,
    dispatchers: f64,
    postgres: f64,
    transactions: f64,
    flushes: f64,
}

impl Meter {
    async fn read(cluster: &Cluster) -> Self {
        tokio::time::sleep(STATISTICS).await;
        let number = |statement| cluster.postgres.query(statement).parse().unwrap();
        Self {
            cores: cluster.cores.iter().map(|core| cpu(core.id())).sum(),
            dispatchers: cluster.dispatchers.iter().map(|one| cpu(one.id())).sum(),
            postgres: cluster.postgres.processes().into_iter().map(cpu).sum(),
            transactions: number("SELECT sum(xact_commit) FROM pg_stat_database"),
            flushes: number("SELECT wal_sync FROM pg_stat_wal"),
        }
    }

    fn combine(self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            cores: f(self.cores, other.cores),
            dispatchers: f(self.dispatchers, other.dispatchers),
            postgres: f(self.postgres, other.postgres),
            transactions: f(self.transactions, other.transactions),
            flushes: f(self.flushes, other.flushes),
        }
    }

    fn since(self, before: &Self) -> Self {
        self.combine(before, |now, before| now - before)
    }

    fn minus(self, other: &Self) -> Self {
        self.since(other)
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn of_a_thousand(self, count: usize) -> Self {
        let share = 1000.0 / count as f64;
        self.combine(&self, |one, _| one * share)
    }
}

impl std::fmt::Display for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.2} CPU-s (cores {:.2}, dispatchers {:.2}, PostgreSQL {:.2}), \
             {:.0} transactions, {:.0} flushes",
            self.cores + self.dispatchers + self.postgres,
            self.cores,
            self.dispatchers,
            self.postgres,
            self.transactions,
            self.flushes
        )
    }
}

/// Seconds of processor time of a process; ticks are hundredths wherever Linux runs.
fn cpu(process: u32) -> f64 {
    // One that has ended meanwhile used what it used.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// A receiver that answers at once.
async fn receiver() -> (String, Arrivals) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let arrivals = Arrivals::default();
    let heard = Arc::clone(&arrivals);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let _ = connection.set_nodelay(true);
            let heard = Arc::clone(&heard);
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| note(request, &heard));
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection), service)
                    .await;
            });
        }
    });
    (url, arrivals)
}

async fn note(
    request: Request<Incoming>,
    arrivals: &Arrivals,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut arrivals = arrivals.lock().unwrap();
    arrivals.1 += 1;
    if let Some(object) = json["data"]["object"].as_str() {
        arrivals.0.entry(object.to_owned()).or_insert(now);
    }
    Ok(Response::new(Empty::new()))
}

/// One that takes connections and never answers.
async fn hanging() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = listener.accept().await {
            open.push(connection);
        }
        Ok::<_, Infallible>(())
    });
    url
}

/// How many requests a second a client makes that does nothing else, over as many connections.
async fn bare_client(url: &str, count: usize) -> f64 {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let body = Bytes::from_static(br#"{"data":{"object":"none","event":"delivery.completed"}}"#);
    let begin = Instant::now();
    stream::iter(0..count)
        .for_each_concurrent(CONNECTIONS * 2, |_| async {
            let request = Request::post(url).body(Full::new(body.clone())).unwrap();
            let response = client.request(request).await.unwrap();
            response.into_body().collect().await.unwrap();
        })
        .await;
    rate(count, begin.elapsed())
}
