//! Jumps of the clock of the host, and a database whose clock differs from those of the hosts.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    all_in_one::AllInOne, all_processors, caller::Caller, cluster::Cluster, eventually, installed,
    postgres::Postgres, program::PROGRAMS, webhook_receiver::WebhookReceiver,
};

/// Longer than the timeout of an attempt.
const TIMEOUT: Duration = Duration::from_mins(1);

/// PostgreSQL's time in microseconds since 1970.
const POSTGRES_NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)";

/// A wall clock for one process that can be set, by `libfaketime`.
struct FakeClock {
    library: String,
    /// Contains the offset, such as `+1h`.
    file: PathBuf,
}

impl FakeClock {
    /// Environment variables for a process, as arguments of `env`.
    fn environment(&self) -> Vec<String> {
        vec![
            format!("LD_PRELOAD={}", self.library),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file.to_str().unwrap()),
            // Reads the file at each call.
            "FAKETIME_NO_CACHE=1".to_owned(),
            // Monotonic clocks do not jump on a host either.
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        ]
    }

    fn set(&self, offset: &str) {
        std::fs::write(&self.file, offset).unwrap();
    }
}

/// The path of `libfaketime`. Without `faketime`, reports that `subject` is skipped.
pub(crate) fn find_library(subject: &str) -> Option<String> {
    let output = Command::new(installed::find("faketime", subject)?)
        .args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// The environment variables of a process whose wall clock differs by an offset, such as `+60s`.
pub(crate) fn shifted(library: &str, offset: &str) -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", library.to_owned()),
        ("FAKETIME", offset.to_owned()),
        // Monotonic clocks do not differ.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// The receiver does not respond until the attempt times out. An expired lease would repeat the
/// notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_clock_jumps_sends_nothing_twice_over_sqlite() {
    let Some(library) = find_library("jumps of the host's clock") else {
        return;
    };
    tokio::join!(
        attempt_over_a_clock_jump(&library, "+1h"),
        attempt_over_a_clock_jump(&library, "-1h")
    );
}

async fn attempt_over_a_clock_jump(library: &str, jump: &str) {
    let processors = all_processors().await;
    let mut clock = None;
    let mut platform = AllInOne::start_under(Path::new("/usr/bin/env"), |directory| {
        let clock = clock.insert(FakeClock {
            library: library.to_owned(),
            file: directory.join("offset"),
        });
        clock.set("+0");
        let delivery = PROGRAMS.delivery.to_str().unwrap().to_owned();
        let environment = clock.environment().into_iter();
        environment.chain([delivery]).collect()
    })
    .await;
    let receiver = WebhookReceiver::start().await;
    receiver.hold_responses(true);
    let shop = platform.shop().await;
    shop.subscribe(receiver.url()).await;
    let delivery = shop.create_delivery().await.unwrap();
    let board = platform.dispatch_board().await;
    board.complete_delivery(&delivery).await;
    receiver.next_notification().await;

    clock.unwrap().set(jump);

    // Tokens issued before the jump are not valid after it.
    let shop = platform.shop().await;
    let after = created_at(&shop.create_delivery().await.unwrap());
    let jumped = after.duration_since(created_at(&delivery)).as_mins();
    assert!(
        (55..=65).contains(&jumped.abs()),
        "{jump}: {jumped} minutes"
    );
    // Another test may run until the attempt ends.
    drop(processors);
    let attempted = wait_for_attempt(&shop).await;
    assert_eq!(attempted["attempts"][0]["failure"], "timeout");
    assert!(
        receiver.received().await.is_empty(),
        "repeated after {jump}"
    );
    receiver.hold_responses(false);
    assert!(platform.server.terminate().await.success());
}

/// Leases expire by PostgreSQL's clock, not by the hosts'.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_follow_the_clock_of_postgresql_an_hour_ahead_of_the_hosts_or_behind() {
    let Some(library) = find_library("another clock in PostgreSQL") else {
        return;
    };
    tokio::join!(
        lease_by_the_clock_of_postgresql(&library, 60),
        lease_by_the_clock_of_postgresql(&library, -60)
    );
}

/// Follows the leases of a notification whose receiver does not respond. `ahead` is in minutes.
async fn lease_by_the_clock_of_postgresql(library: &str, ahead: i64) {
    let processors = all_processors().await;
    let environment = shifted(library, &format!("{ahead:+}m"));
    let Some(postgres) = Postgres::start_with_environment(&environment) else {
        return;
    };
    let url = postgres.url();
    let mut cluster = Cluster::start_on(postgres, &url).await;
    let receiver = WebhookReceiver::start().await;
    receiver.hold_responses(true);
    let shop = cluster.shop().await;
    shop.subscribe(receiver.url()).await;
    let delivery = shop.create_delivery().await.unwrap();
    let query = |sql: &str| cluster.postgres.query(sql);
    let created = created_at(&delivery).as_microsecond();
    let difference = query(&format!("SELECT ({POSTGRES_NOW} - {created}) / 60000000"));
    let difference: i64 = difference.parse().unwrap();
    assert!(
        (ahead - 2..=ahead + 2).contains(&difference),
        "{difference}"
    );
    let board = cluster.dispatch_board().await;
    board.complete_delivery(&delivery).await;
    // Other tests may run: from here on, this one waits for attempts and leases to end.
    drop(processors);

    // The first attempt, and the second after the first has timed out.
    let mut arrived = Vec::new();
    for ended in 0..2 {
        arrived.push(receiver.next_notification().await);
        let leased = query(&format!(
            "SELECT attempts, (lease_expires_at - {POSTGRES_NOW}) / 1000000.0
             FROM notifications WHERE state = 'leased'"
        ));
        let (attempts, left) = leased.split_once('|').unwrap();
        assert_eq!(attempts, ended.to_string(), "ended attempts");
        let left: f64 = left.parse().unwrap();
        assert!((0.0..=60.0).contains(&left), "{ahead}: {left} s are left");
    }

    // Its dispatcher is killed. The rest of the lease is shortened; it is longer than the five
    // seconds between two checks for expired leases.
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.kill();
    }
    receiver.hold_responses(false);
    let expiry = cluster.postgres.query(&format!(
        "UPDATE notifications SET lease_expires_at = {POSTGRES_NOW} + 8000000
         WHERE state = 'leased' RETURNING lease_expires_at"
    ));
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.start().await;
    }
    arrived.push(receiver.next_notification().await);
    let is_over = cluster
        .postgres
        .query(&format!("SELECT {POSTGRES_NOW} >= {expiry}"));

    assert_eq!(is_over, "t", "{ahead}: sent again before its lease expired");
    let ids = arrived.iter().map(|attempt| attempt.header("webhook-id"));
    let distinct: BTreeSet<_> = ids.collect();
    assert_eq!(distinct.len(), 1, "{distinct:?}");
}

fn created_at(delivery: &Value) -> Timestamp {
    let created = delivery["pickup"]["createdAt"].as_str();
    created.unwrap().parse().unwrap()
}

/// The shop's only notification, once its first attempt is recorded.
async fn wait_for_attempt(shop: &Caller) -> Value {
    let webhooks = shop.get("/api/webhooks").await.unwrap();
    let webhook = webhooks["hydra:member"][0]["@id"].as_str().unwrap();
    let path = format!("{webhook}/notifications");
    eventually(TIMEOUT, "no attempt ends at its deadline", async || {
        let page = shop.get(&path).await.unwrap();
        let notification = page["hydra:member"][0]["@id"].as_str().unwrap();
        let read = shop.get(notification).await.unwrap();
        read["attempts"].get(0).is_some().then_some(read)
    })
    .await
}
