//! "Clock jumps of an hour either way: no lease taken early": jumps of the host's clock.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    ONE_AT_A_TIME, all_in_one::AllInOne, caller::Caller, program::PROGRAMS,
    webhook_receiver::WebhookReceiver,
};

/// Longer than the deadline of an attempt.
const TIMEOUT: Duration = Duration::from_mins(1);

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

/// The path of `libfaketime`; `None` where `faketime` is not installed.
fn find_library() -> Option<String> {
    let output = Command::new("faketime")
        .args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"])
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// The receiver does not respond until the attempt times out. An expired lease would repeat the
/// notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_clock_jumps_sends_nothing_twice_over_sqlite() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(library) = find_library() else {
        crate::report("faketime is not installed: the test of clock jumps is SKIPPED");
        return;
    };
    for jump in ["+1h", "-1h"] {
        let mut clock = None;
        let mut platform = AllInOne::start_under(Path::new("/usr/bin/env"), |directory| {
            let clock = clock.insert(FakeClock {
                library: library.clone(),
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
        let attempted = wait_for_attempt(&shop).await;
        assert_eq!(attempted["attempts"][0]["failure"], "timeout");
        assert!(
            receiver.received().await.is_empty(),
            "repeated after {jump}"
        );
        receiver.hold_responses(false);
        assert!(platform.server.terminate().await.success());
    }
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
    let attempted = async {
        loop {
            let page = shop.get(&path).await.unwrap();
            let notification = page["hydra:member"][0]["@id"].as_str().unwrap();
            let read = shop.get(notification).await.unwrap();
            if read["attempts"].get(0).is_some() {
                return read;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, attempted)
        .await
        .expect("an attempt should end at its deadline")
}
