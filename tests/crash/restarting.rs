//! Clean ends under load: a restart of every process, one after the other, and the end of a core
//! for good. Nobody notices.

use std::time::{Duration, Instant};

use crate::{
    ONE_AT_A_TIME,
    caller::Caller,
    cluster::Cluster,
    load::Load,
    oracle,
    receiver::{Receiver, Told},
};

/// How many shops and how many couriers.
const WORKERS: usize = 6;

/// How many requests succeed between two restarts: both gateways and both cores are in use.
const BETWEEN: u64 = 60;

/// Less than a lease: what a dispatcher left behind when it ended would come too late.
const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_fails_no_request_and_repeats_no_notification() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, receiver, load) = under_load(&cluster).await;

    let mut restarts = 0;
    for server in cluster.servers() {
        load.acknowledges(BETWEEN).await;
        let status = server.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", server.name());
        load.acknowledges(BETWEEN).await;
        server.start().await;
        restarts += 1;
    }
    load.acknowledges(BETWEEN).await;
    let (acknowledged, failures) = load.finish().await;

    let figures = oracle::judge(&acknowledged, &shop, &receiver, DEADLINE).await;
    crate::say(&format!(
        "rolling restart: {restarts} processes; failed requests: {}; {figures}",
        failures.len()
    ));
    assert!(failures.is_empty(), "{failures:#?}");
    let expected = oracle::Figures {
        deliveries: figures.deliveries,
        done: 2 * figures.deliveries,
        ..oracle::Figures::default()
    };
    assert_eq!(figures, expected);
}

/// A shop, who hears of what it has completed, and the load that it is.
async fn under_load(cluster: &Cluster) -> (Caller, Receiver, Load) {
    let receiver = Receiver::start().await;
    let shop = cluster.shop().await;
    shop.subscribe(receiver.url()).await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);
    (shop, receiver, load)
}

/// How many notifications are under way when a core ends. Each is as likely of one core as of the
/// other.
const UNDER_WAY: usize = 16;

/// Far less than the half minute after which a dispatcher gives up what it holds.
const PROMPT: Duration = Duration::from_secs(15);

/// Dispatchers report what they hold of it to the core that is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_core_that_ends_for_good_while_notifications_are_under_way_repeats_none() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, receiver, load) = under_load(&cluster).await;
    load.acknowledges(BETWEEN).await;

    receiver.answer(false);
    let before = receiver.so_far().total;
    let are_under_way = |told: &Told| told.total >= before + UNDER_WAY;
    assert!(receiver.wait(DEADLINE, are_under_way).await);
    let status = cluster.cores[0].terminate().await;
    assert_eq!(status.code(), Some(0));
    receiver.answer(true);
    load.acknowledges(BETWEEN).await;
    let (acknowledged, _) = load.finish().await;

    let ended = Instant::now();
    let owed = "SELECT count(*) FROM notifications WHERE state IN ('pending', 'leased')";
    while cluster.postgres.query(owed) != "0" {
        assert!(ended.elapsed() < DEADLINE, "outcomes are not recorded");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let figures = oracle::judge(&acknowledged, &shop, &receiver, DEADLINE).await;
    crate::say(&format!("a core ended for good: {figures}"));
    figures.assert_nothing_lost(2 * figures.deliveries);
    assert_eq!(figures.repeats, 0);

    for dispatcher in &mut cluster.dispatchers {
        let told = Instant::now();
        let status = dispatcher.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", dispatcher.name());
        assert!(told.elapsed() < PROMPT, "{:?}", told.elapsed());
    }
}
