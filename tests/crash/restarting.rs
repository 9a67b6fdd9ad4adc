//! A clean restart of every process, one after the other, under load: nobody notices.

use std::time::Duration;

use crate::{ONE_AT_A_TIME, cluster::Cluster, load::Load, oracle, receiver::Receiver};

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
    let receiver = Receiver::start().await;
    let shop = cluster.shop().await;
    shop.subscribe(receiver.url()).await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);

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
