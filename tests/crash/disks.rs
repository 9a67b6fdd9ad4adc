//! A disk that is full, and a disk that stands still, under the embedded SQLite: who writes is
//! told to come again, who reads is served, and when the disk is well so is the platform.

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

/// How many creators and as many completers.
const WORKERS: usize = 4;

/// How many requests are acknowledged before the disk fails, and after.
const BEFORE: u64 = 60;

/// How many requests are refused while it fails.
const REFUSED: u64 = 4 * WORKERS as u64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_serves_reads_and_loses_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    let outcome = fail(&mut platform, &mut disk, Disk::fill, Disk::free).await;

    crate::say(&format!("full disk: {outcome}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_disk_refuses_writes_serves_reads_and_loses_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    let outcome = fail(&mut platform, &mut disk, Disk::freeze, Disk::thaw).await;

    crate::say(&format!("frozen disk: {outcome}"));
}

/// Lets the disk fail under load and be well again; what was seen.
async fn fail(
    platform: &mut AllInOne,
    disk: &mut Disk,
    strike: fn(&mut Disk),
    mend: fn(&mut Disk),
) -> String {
    let receiver = Receiver::start().await;
    let shop = platform.shop().await;
    shop.subscribe(receiver.url()).await;
    let known = shop.create_delivery().await.unwrap();
    let load = Load::start(WORKERS, &shop, &platform.dispatch_board().await);
    load.acknowledges(BEFORE).await;

    strike(disk);
    load.refuses(REFUSED).await;
    assert_reads_go_on(platform, &shop, known["dropoff"]["@id"].as_str().unwrap()).await;
    let creating = Instant::now();
    let refused = shop.create_delivery_once("refused").await.unwrap_err();
    let told_after = creating.elapsed();
    assert_told_to_come_again(&refused);

    mend(disk);
    let resumed_after = load.first_success_after(Instant::now()).await;
    load.acknowledges(BEFORE).await;
    let not_refused = shop.create_delivery_once("refused").await.unwrap();
    let (mut acknowledged, failures) = load.finish().await;
    failures.iter().for_each(assert_told_to_come_again);
    acknowledged.created(&known);
    acknowledged.created(&not_refused);
    platform.end_leases();
    let figures = oracle::judge(&acknowledged, &shop, &receiver, oracle::TAKEN_OVER).await;
    // Two were never meant to be completed.
    figures.assert_nothing_lost(2 * (figures.deliveries - 2));
    assert!(platform.server.terminate().await.success());
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
    format!(
        "{} requests told to come again (one of them after {} ms), first success {} ms after it \
         was well; {figures}",
        failures.len() + 1,
        told_after.as_millis(),
        resumed_after.as_millis(),
    )
}

/// A task is read and a token is issued, and the process is well.
async fn assert_reads_go_on(platform: &AllInOne, shop: &Caller, task: &str) {
    assert_eq!(shop.get(task).await.unwrap()["status"], "TODO");
    let again = platform.shop().await;
    assert_eq!(again.get(task).await.unwrap()["status"], "TODO");
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(shop.probe(probe).await, 200, "{probe}");
    }
}

/// 503, not 507: "the request MUST NOT be repeated until it is requested by a separate user
/// action" (RFC 4918 §11.5), and that is not what a shop's program should do.
fn assert_told_to_come_again(failure: &Failure) {
    assert!(failure.is_to_come_again(), "{failure}");
}
