//! A full and a frozen disk under SQLite: writes get retryable errors, reads succeed, the platform
//! is not ready, and writes succeed again once the disk is repaired.

use std::time::{Duration, Instant};

use crate::{
    SLACK,
    all_in_one::AllInOne,
    all_processors,
    caller::{Caller, iri},
    checker,
    cluster::{EXPIRE_LEASES, credentials},
    counting_receiver::CountingReceiver,
    disk::Disk,
    eventually,
    failure::Failure,
    load::Load,
    program,
};

/// The number of creators, and of completers.
const WORKERS: usize = 4;

/// The number of successful requests before the fault, and after it.
const SUCCESSES: u64 = 60;

/// The idempotency keys of a delivery created before the fault, and of one created during it and
/// again afterwards.
const BEFORE: &str = "before the fault";
const DURING: &str = "during the fault";

/// The number of failed requests during the fault: more than those in flight when it begins.
const FAILURES: u64 = 4 * WORKERS as u64;

/// The timeout of a write: the longest wait for the first error.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes after the first error fail at once, without waiting for that timeout.
const LATER_ERROR_TIMEOUT: Duration = Duration::from_secs(1);

/// The time in which writes succeed again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The time in which `/readyz` responds.
const READINESS_TIMEOUT: Duration = Duration::from_secs(1);

/// The time in which `/readyz` reports a fault or its end.
const READINESS_CHANGE: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_rejects_writes_serves_reads_and_loses_nothing() {
    let _processors = all_processors().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    // The first error may take a while: writes fit into the write-ahead log.
    let (_, figures) = run_fault(&mut platform, &mut disk, Disk::fill, Disk::free).await;

    crate::report(&format!("full disk: {figures}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_disk_rejects_writes_serves_reads_and_loses_nothing() {
    let _processors = all_processors().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };

    let (first_failed_after, figures) =
        run_fault(&mut platform, &mut disk, Disk::freeze, Disk::thaw).await;

    crate::report(&format!("frozen disk: {figures}"));
    assert!(
        first_failed_after < ERROR_TIMEOUT + SLACK,
        "{first_failed_after:?}"
    );
}

/// The commit of an operator's command hangs, so its outcome is unknown. A repetition must neither
/// create a second client nor lose the secret of the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_during_a_frozen_disk_is_repeated_with_its_key_and_takes_effect_once() {
    let _processors = all_processors().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };
    let create = ["clients", "create", "--name=Night shift", "--scopes=admin"];

    disk.freeze();
    let unconfirmed = platform.operator(&create);
    disk.thaw();

    assert_eq!(unconfirmed.status.code(), Some(1), "{unconfirmed:?}");
    let printed = String::from_utf8_lossy(&unconfirmed.stderr);
    let command = printed.trim_end().lines().last().unwrap();
    assert!(command.contains("--idempotency-key="), "{printed}");
    let command = format!("{command} --json");
    let repeated = [(); 2].map(|()| program::json(&mut platform.command(&["sh", "-c", &command])));
    assert_eq!(repeated[0], repeated[1]);
    let clients = program::parse(&platform.operator(&["clients", "list", "--json"]));
    let named = clients.as_array().unwrap().iter();
    assert_eq!(
        named
            .filter(|client| client["name"] == "Night shift")
            .count(),
        1
    );
    let credentials = credentials(&repeated[0]);
    platform.caller_for(&credentials, "admin").await;
    assert!(platform.server.terminate().await.success());
}

/// Injects a disk fault under load and repairs it; returns the time until the first error, and the
/// figures.
async fn run_fault(
    platform: &mut AllInOne,
    disk: &mut Disk,
    inject: fn(&mut Disk),
    repair: fn(&mut Disk),
) -> (Duration, String) {
    let shop = platform.shop().await;
    let receiver = CountingReceiver::subscribed(&shop).await;
    let existing = shop.create_delivery_with_key(BEFORE).await.unwrap();
    let load = Load::start(WORKERS, &shop, &platform.dispatch_board().await);
    load.wait_for_successes(SUCCESSES).await;

    inject(disk);
    let injected = Instant::now();
    load.wait_for_failures(1).await;
    let first_failed_after = injected.elapsed();
    load.wait_for_failures(FAILURES).await;
    assert_reads_succeed(platform, &shop, iri(&existing["dropoff"])).await;
    wait_for_readiness(&shop, 503).await;
    let creating = Instant::now();
    let failure = shop.create_delivery_with_key(DURING).await.unwrap_err();
    let failed_after = creating.elapsed();
    assert_retryable(&failure);
    assert!(
        failed_after < LATER_ERROR_TIMEOUT + SLACK,
        "{failed_after:?}"
    );

    repair(disk);
    let recovered_after = load.first_success_after(Instant::now()).await;
    assert!(
        recovered_after < RECOVERY_TIMEOUT + SLACK,
        "{recovered_after:?}"
    );
    load.wait_for_successes(SUCCESSES).await;
    wait_for_readiness(&shop, 200).await;
    let retried = shop.create_delivery_with_key(DURING).await.unwrap();
    let (mut acknowledged, failures) = load.finish().await;
    failures.iter().for_each(assert_retryable);
    acknowledged.created(BEFORE, existing);
    acknowledged.created(DURING, retried);
    platform.sql(EXPIRE_LEASES);
    let query = |statement: &str| platform.sql(statement);
    let timeout = checker::RECOVERY_TIMEOUT;
    let figures = checker::verify(&acknowledged, &shop, &receiver, query, timeout).await;
    figures.assert_nothing_lost();
    assert!(platform.server.terminate().await.success());
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
    let figures = format!(
        "{} requests got retryable errors, the first after {} ms, a later one after {} ms; first \
         success {} ms after the repair; {figures}",
        failures.len() + 1,
        first_failed_after.as_millis(),
        failed_after.as_millis(),
        recovered_after.as_millis(),
    );
    (first_failed_after, figures)
}

/// Waits for a status of `/readyz`, which responds within [`READINESS_TIMEOUT`].
async fn wait_for_readiness(shop: &Caller, status: u16) {
    let what = format!("/readyz does not become {status}");
    eventually(READINESS_CHANGE, &what, async || {
        let probing = Instant::now();
        let found = shop.probe("/readyz").await;
        let took = probing.elapsed();
        assert!(took < READINESS_TIMEOUT + SLACK, "{took:?}");
        (found == status).then_some(())
    })
    .await;
}

/// Asserts that a task is read, a token is issued, and the process is healthy.
async fn assert_reads_succeed(platform: &AllInOne, shop: &Caller, task: &str) {
    assert_eq!(shop.get(task).await.unwrap()["status"], "TODO");
    let again = platform.shop().await;
    assert_eq!(again.get(task).await.unwrap()["status"], "TODO");
    assert_eq!(shop.probe("/healthz").await, 200);
}

/// 503, not 507: "the request MUST NOT be repeated until it is requested by a separate user
/// action" (RFC 4918 §11.5), but a shop's program should retry.
fn assert_retryable(failure: &Failure) {
    assert!(failure.is_retryable(), "{failure}");
}
