//! A full and a frozen disk under SQLite: writes get retryable errors, reads succeed, and writes
//! succeed again once the disk is repaired.

use std::time::Instant;

use crate::{
    ONE_AT_A_TIME,
    all_in_one::AllInOne,
    caller::{Caller, Failure},
    disk::Disk,
    load::Load,
    oracle,
    receiver::Receiver,
};

/// The number of creators, and of completers.
const WORKERS: usize = 4;

/// The number of successful requests before the fault, and after it.
const SUCCESSES: u64 = 60;

/// The number of failed requests during the fault.
const FAILURES: u64 = 4 * WORKERS as u64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_rejects_writes_serves_reads_and_loses_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    let figures = run_fault(&mut platform, &mut disk, Disk::fill, Disk::free).await;

    crate::report(&format!("full disk: {figures}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_disk_rejects_writes_serves_reads_and_loses_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    let figures = run_fault(&mut platform, &mut disk, Disk::freeze, Disk::thaw).await;

    crate::report(&format!("frozen disk: {figures}"));
}

/// Injects a disk fault under load and repairs it; returns the figures.
async fn run_fault(
    platform: &mut AllInOne,
    disk: &mut Disk,
    inject: fn(&mut Disk),
    repair: fn(&mut Disk),
) -> String {
    let receiver = Receiver::start().await;
    let shop = platform.shop().await;
    shop.subscribe(receiver.url()).await;
    let existing = shop.create_delivery().await.unwrap();
    let load = Load::start(WORKERS, &shop, &platform.dispatch_board().await);
    load.wait_for_successes(SUCCESSES).await;

    inject(disk);
    load.wait_for_failures(FAILURES).await;
    assert_reads_succeed(
        platform,
        &shop,
        existing["dropoff"]["@id"].as_str().unwrap(),
    )
    .await;
    let creating = Instant::now();
    let failure = shop
        .create_delivery_with_key("during fault")
        .await
        .unwrap_err();
    let failed_after = creating.elapsed();
    assert_retryable(&failure);

    repair(disk);
    let resumed_after = load.first_success_after(Instant::now()).await;
    load.wait_for_successes(SUCCESSES).await;
    let retried = shop.create_delivery_with_key("during fault").await.unwrap();
    let (mut acknowledged, failures) = load.finish().await;
    failures.iter().for_each(assert_retryable);
    acknowledged.created(&existing);
    acknowledged.created(&retried);
    platform.expire_leases();
    let figures = oracle::verify(&acknowledged, &shop, &receiver, oracle::RECOVERY_TIMEOUT).await;
    // Two are not the load's and stay uncompleted.
    figures.assert_nothing_lost(2 * (figures.deliveries - 2));
    assert!(platform.server.terminate().await.success());
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
    format!(
        "{} requests got retryable errors (one of them after {} ms), first success {} ms after the \
         repair; {figures}",
        failures.len() + 1,
        failed_after.as_millis(),
        resumed_after.as_millis(),
    )
}

/// Asserts that a task is read, a token is issued, and the process is healthy.
async fn assert_reads_succeed(platform: &AllInOne, shop: &Caller, task: &str) {
    assert_eq!(shop.get(task).await.unwrap()["status"], "TODO");
    let again = platform.shop().await;
    assert_eq!(again.get(task).await.unwrap()["status"], "TODO");
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(shop.probe(probe).await, 200, "{probe}");
    }
}

/// 503, not 507: "the request MUST NOT be repeated until it is requested by a separate user
/// action" (RFC 4918 §11.5), but a shop's program should retry.
fn assert_retryable(failure: &Failure) {
    assert!(failure.is_retryable(), "{failure}");
}
