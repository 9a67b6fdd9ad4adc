//! Outages of PostgreSQL: every request gets a retryable error in time, and service resumes with the
//! database, without a restart of the platform.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    ONE_AT_A_TIME,
    caller::{Caller, Failure},
    cluster::Cluster,
    load::Load,
    oracle,
    postgres::Postgres,
    postgres_proxy::PostgresProxy,
    receiver::Receiver,
};

/// The number of requests of each kind during an outage.
const REQUESTS: usize = 8;

/// The time in which requests must succeed again: longer than every timeout on the way.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(40);

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
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    let existing = callers.0.create_delivery().await.unwrap();
    let task = existing["dropoff"]["@id"].as_str().unwrap();

    for (description, begin, end) in OUTAGES {
        begin(&mut cluster.postgres);
        let rejected_after = assert_retryable_errors(&cluster, &callers, task).await;
        end(&mut cluster.postgres);
        let (recovered_after, _) = time_to_success(&cluster, &callers.0, task).await;
        crate::report(&format!(
            "PostgreSQL {description}: {} requests got retryable errors, the last after {} ms; first \
             success {} ms after its return",
            5 * REQUESTS,
            rejected_after.as_millis(),
            recovered_after.as_millis()
        ));
    }
}

/// As when the server's machine is lost and another gets its address: open connections stay silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_connections_are_closed_and_nothing_is_lost() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let proxy = PostgresProxy::start(postgres.socket()).await;
    let url = proxy.database_url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let receiver = Receiver::start().await;
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    callers.0.subscribe(receiver.url()).await;
    let existing = callers.0.create_delivery().await.unwrap();
    let task = existing["dropoff"]["@id"].as_str().unwrap();
    let load = Load::start(4, &callers.0, &callers.1);
    load.wait_for_successes(60).await;

    proxy.cut();
    let rejected_after = assert_retryable_errors(&cluster, &callers, task).await;
    proxy.restore();
    let restored = Instant::now();
    let (_, created) = time_to_success(&cluster, &callers.0, task).await;
    load.wait_for_successes(60).await;
    let recovered_after = restored.elapsed();
    let (mut acknowledged, failures) = load.finish().await;

    for failure in &failures {
        assert!(failure.is_retryable(), "{failure}");
    }
    for delivery in [&existing, &created] {
        acknowledged.created(delivery);
    }
    for number in 0..REQUESTS {
        let delivery = callers
            .0
            .create_delivery_with_key(&key(number))
            .await
            .unwrap();
        acknowledged.created(&delivery);
    }
    cluster.expire_leases();
    let figures = oracle::verify(
        &acknowledged,
        &callers.0,
        &receiver,
        oracle::RECOVERY_TIMEOUT,
    )
    .await;
    crate::report(&format!(
        "connections to PostgreSQL dead: retryable errors within {} ms; recovered {} ms after new \
         connections were accepted; failed requests: {}; {figures}",
        rejected_after.as_millis(),
        recovered_after.as_millis(),
        failures.len()
    ));
    // Only the load's deliveries are completed.
    figures.assert_nothing_lost(2 * (figures.deliveries - 2 - REQUESTS));
}

/// The idempotency key of a delivery created during an outage.
fn key(number: usize) -> String {
    format!("outage {number}")
}

/// Sends requests of every kind concurrently; returns the time until the last response.
async fn assert_retryable_errors(
    cluster: &Cluster,
    (shop, board): &(Caller, Caller),
    task: &str,
) -> Duration {
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
    for gateway in &cluster.gateway_urls {
        let gateway = shop.with_base_url(gateway);
        // The gateway caches a core's readiness for a second.
        let mut ready = gateway.probe("/readyz").await;
        while ready == 200 && sent.elapsed() < RECOVERY_TIMEOUT {
            tokio::time::sleep(Duration::from_millis(100)).await;
            ready = gateway.probe("/readyz").await;
        }
        assert_eq!(ready, 503);
        assert_eq!(gateway.probe("/healthz").await, 200);
    }
    rejected_after
}

/// Waits until a delivery is created, a task is read and every gateway is ready; returns the time to
/// the creation, and the delivery.
async fn time_to_success(cluster: &Cluster, shop: &Caller, task: &str) -> (Duration, Value) {
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
                    return (first, created);
                }
            }
            Err(failure) => assert!(back.elapsed() < RECOVERY_TIMEOUT, "no recovery: {failure}"),
        }
        assert!(back.elapsed() < RECOVERY_TIMEOUT, "not ready: {read:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
