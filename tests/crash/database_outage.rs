//! Outages of PostgreSQL: every request gets a retryable error in time, and service resumes with the
//! database, without a restart of the platform.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    SLACK, all_processors,
    caller::{Caller, iri},
    checker,
    cluster::{Cluster, EXPIRE_LEASES},
    counting_receiver::CountingReceiver,
    failure::Failure,
    load::Load,
    postgres::Postgres,
    postgres_proxy::PostgresProxy,
};

/// The number of requests of each kind during an outage.
const REQUESTS: usize = 8;

/// The timeout of a read and of a write: the longest wait for an error.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// The time in which a gateway reports that it is not ready: a core notices the outage by two checks
/// of at most 700 ms, 500 ms apart, and the gateway asks it every 500 ms.
const NOT_READY_TIMEOUT: Duration = Duration::from_secs(3);

/// The time in which requests succeed again: by then, operations on connections that do not respond
/// have timed out, and the connections are closed.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A description, how the outage begins, and how it ends.
type Outage = (&'static str, fn(&mut Postgres), fn(&mut Postgres));

const OUTAGES: [Outage; 4] = [
    (
        "stopped",
        |postgres| postgres.stop(),
        |postgres| postgres.restart(),
    ),
    (
        "stopped immediately",
        |postgres| postgres.stop_immediately(),
        |postgres| postgres.restart(),
    ),
    (
        "killed",
        |postgres| postgres.kill(),
        |postgres| postgres.restart(),
    ),
    (
        "paused (SIGSTOP)",
        |postgres| postgres.pause(),
        |postgres| postgres.resume(),
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_gets_a_retryable_error_while_postgres_is_down() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let existing = shop.create_delivery().await.unwrap();
    let task = iri(&existing["dropoff"]);

    for (description, begin, end) in OUTAGES {
        begin(&mut cluster.postgres);
        let rejected_after = assert_retryable_errors(&cluster, &shop, &board, task).await;
        end(&mut cluster.postgres);
        let (recovered_after, _) = time_to_success(&cluster, &shop, task).await;
        crate::report(&format!(
            "PostgreSQL {description}: {} requests got retryable errors, the last after {} ms; first \
             success {} ms after its return",
            5 * REQUESTS,
            rejected_after.as_millis(),
            recovered_after.as_millis()
        ));
    }
}

/// Like after the loss of the server's machine, when another gets its address: open connections get
/// no response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_connections_are_closed_and_nothing_is_lost() {
    let _processors = all_processors().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let proxy = PostgresProxy::start(postgres.socket()).await;
    let url = proxy.database_url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;
    let existing = shop.create_delivery_with_key(EXISTING).await.unwrap();
    let task = iri(&existing["dropoff"]).to_owned();
    let load = Load::start(4, &shop, &board);
    load.wait_for_successes(60).await;

    proxy.cut();
    let rejected_after = assert_retryable_errors(&cluster, &shop, &board, &task).await;
    proxy.restore();
    let restored = Instant::now();
    let (_, (created_key, created)) = time_to_success(&cluster, &shop, &task).await;
    load.wait_for_successes(60).await;
    let recovered_after = restored.elapsed();
    let (mut acknowledged, failures) = load.finish().await;

    for failure in &failures {
        assert!(failure.is_retryable(), "{failure}");
    }
    // Its completion was requested during the outage, and not acknowledged.
    acknowledged.requested.insert(task);
    acknowledged.created(EXISTING, existing);
    acknowledged.created(&created_key, created);
    for number in 0..REQUESTS {
        let key = key(number);
        let delivery = shop.create_delivery_with_key(&key).await.unwrap();
        acknowledged.created(&key, delivery);
    }
    let query = |statement: &str| cluster.postgres.query(statement);
    query(EXPIRE_LEASES);
    let figures = checker::verify(
        &acknowledged,
        &shop,
        &receiver,
        query,
        checker::RECOVERY_TIMEOUT,
    )
    .await;
    crate::report(&format!(
        "connections to PostgreSQL dead: retryable errors within {} ms; recovered {} ms after new \
         connections were accepted; failed requests: {}; {figures}",
        rejected_after.as_millis(),
        recovered_after.as_millis(),
        failures.len()
    ));
    figures.assert_nothing_lost();
}

/// The idempotency key of a delivery created before the outage.
const EXISTING: &str = "before the outage";

/// The idempotency key of a delivery created during an outage.
fn key(number: usize) -> String {
    format!("outage {number}")
}

/// Sends requests of every kind concurrently, and waits until no gateway is ready; returns the time
/// until the last response.
async fn assert_retryable_errors(
    cluster: &Cluster,
    shop: &Caller,
    board: &Caller,
    task: &str,
) -> Duration {
    let [first, second] = cluster
        .gateway_urls
        .each_ref()
        .map(|gateway| assert_becomes_not_ready(shop.with_base_url(gateway)));
    let (rejected_after, (), ()) =
        tokio::join!(assert_rejections(shop, board, task), first, second);
    rejected_after
}

async fn assert_rejections(shop: &Caller, board: &Caller, task: &str) -> Duration {
    let sent = Instant::now();
    let mut requests = JoinSet::new();
    for number in 0..REQUESTS {
        let key = key(number);
        let (shop, board, task) = (shop.clone(), board.clone(), task.to_owned());
        requests.spawn(async move {
            let (created, read, listed, completed, token) = tokio::join!(
                shop.create_delivery_with_key(&key),
                shop.get(&task),
                shop.get("/api/deliveries"),
                board.complete(&task),
                shop.request_token(),
            );
            [created, read, listed, completed, token]
        });
    }
    for (kind, response) in requests.join_all().await.into_iter().flat_map(|responses| {
        let kinds = ["create", "read", "list", "complete", "token"];
        kinds.into_iter().zip(responses)
    }) {
        let is_retryable = response.as_ref().is_err_and(Failure::is_retryable);
        assert!(is_retryable, "{kind}: {response:?}");
    }
    let rejected_after = sent.elapsed();
    assert!(rejected_after < ERROR_TIMEOUT + SLACK, "{rejected_after:?}");
    rejected_after
}

/// A gateway without a database is healthy, but not ready.
async fn assert_becomes_not_ready(gateway: Caller) {
    let lost = Instant::now();
    let mut ready = gateway.probe("/readyz").await;
    while ready == 200 && lost.elapsed() < NOT_READY_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(50)).await;
        ready = gateway.probe("/readyz").await;
    }
    assert_eq!(ready, 503);
    let reported_after = lost.elapsed();
    assert!(
        reported_after < NOT_READY_TIMEOUT + SLACK,
        "{reported_after:?}"
    );
    assert_eq!(gateway.probe("/healthz").await, 200);
}

/// Waits until a delivery is created, a task is read and every gateway is ready; returns the time to
/// the creation, and the delivery with its idempotency key.
async fn time_to_success(
    cluster: &Cluster,
    shop: &Caller,
    task: &str,
) -> (Duration, (String, Value)) {
    let back = Instant::now();
    let key = Uuid::now_v7().to_string();
    let mut success = None;
    loop {
        let created = shop.create_delivery_with_key(&key).await;
        let read = shop.get(task).await;
        let mut ready = true;
        for gateway in &cluster.gateway_urls {
            ready &= shop.with_base_url(gateway).probe("/readyz").await == 200;
        }
        match created {
            Ok(created) => {
                let first = *success.get_or_insert_with(|| back.elapsed());
                if ready && read.is_ok() {
                    return (first, (key, created));
                }
            }
            Err(failure) => assert!(
                back.elapsed() < RECOVERY_TIMEOUT + SLACK,
                "no recovery: {failure}"
            ),
        }
        assert!(
            back.elapsed() < RECOVERY_TIMEOUT + SLACK,
            "not ready: {read:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
