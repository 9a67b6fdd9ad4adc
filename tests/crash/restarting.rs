//! Graceful shutdowns under load: a rolling restart of every process, and a core that shuts down for
//! good.

use std::time::{Duration, Instant};

use crate::{
    all_processors,
    caller::Caller,
    checker,
    cluster::Cluster,
    counting_receiver::{CountingReceiver, Received},
    exposition::wait_until_cores_are_up,
    load::Load,
};

/// The number of workers that create deliveries, and of those that complete their tasks.
const WORKERS: usize = 6;

/// The number of successful requests between two steps: enough to use both gateways and both cores.
const REQUESTS_BETWEEN_STEPS: u64 = 60;

/// Shorter than a lease: the test fails if a process that ends leaves a notification leased.
const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_and_repeats_no_notification() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, receiver, load) = start_load(&cluster).await;

    let mut restarts = 0;
    let gateways = cluster.gateway_health;
    for server in cluster.servers() {
        load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
        wait_until_cores_are_up(gateways).await;
        let status = server.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", server.name());
        load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
        server.start().await;
        restarts += 1;
    }
    load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
    let (acknowledged, failures) = load.finish().await;

    let query = |statement: &str| cluster.postgres.query(statement);
    checker::wait_until_settled(query, TIMEOUT).await;
    // Until they have exited, they may send a notification whose outcome is recorded.
    for dispatcher in &mut cluster.dispatchers {
        assert_eq!(dispatcher.terminate().await.code(), Some(0));
    }
    let figures = checker::verify(&acknowledged, &shop, &receiver, query, TIMEOUT).await;
    crate::report(&format!(
        "rolling restart: {restarts} processes; failed requests: {}; {figures}",
        failures.len()
    ));
    assert!(failures.is_empty(), "{failures:#?}");
    figures.assert_nothing_lost();
    assert_eq!(figures.repeats, 0);
}

/// An API client of the store, its webhook receiver, and load.
async fn start_load(cluster: &Cluster) -> (Caller, CountingReceiver, Load) {
    let shop = cluster.shop().await;
    let receiver = CountingReceiver::subscribed(&shop).await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);
    (shop, receiver, load)
}

/// The number of notifications in flight when a core shuts down. Each may be leased by either
/// core.
const IN_FLIGHT: usize = 16;

/// Far less than the 30 s that a dispatcher takes at most to drain.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Dispatchers report the outcomes of the core's notifications to the remaining core.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_core_that_shuts_down_for_good_with_notifications_in_flight_repeats_none() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, receiver, load) = start_load(&cluster).await;
    load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;

    // Before it has accepted one, a receiver gets the notifications one at a time.
    assert!(receiver.wait(TIMEOUT, |received| received.total > 1).await);
    receiver.set_responding(false);
    let before = receiver.received().total;
    let are_in_flight = |received: &Received| received.total >= before + IN_FLIGHT;
    assert!(receiver.wait(TIMEOUT, are_in_flight).await);
    let status = cluster.cores[0].terminate().await;
    assert_eq!(status.code(), Some(0));
    receiver.set_responding(true);
    load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
    let (acknowledged, _) = load.finish().await;

    let query = |statement: &str| cluster.postgres.query(statement);
    let figures = checker::verify(&acknowledged, &shop, &receiver, query, TIMEOUT).await;
    crate::report(&format!("a core shut down for good: {figures}"));
    figures.assert_nothing_lost();
    assert_eq!(figures.repeats, 0);

    for dispatcher in &mut cluster.dispatchers {
        let signalled = Instant::now();
        let status = dispatcher.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", dispatcher.name());
        assert!(
            signalled.elapsed() < SHUTDOWN_TIMEOUT,
            "{:?}",
            signalled.elapsed()
        );
    }
}
