//! "Clock jumps of an hour either way: no lease taken early": the host's clock, under a process.

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

/// Beyond the deadline of an attempt.
const DEADLINE: Duration = Duration::from_mins(1);

/// A host's clock that can be set, for one process.
struct Jumping {
    library: String,
    /// Says by how much it is ahead.
    file: PathBuf,
}

impl Jumping {
    /// The environment in which a process has it, as `env` takes it.
    fn environment(&self) -> Vec<String> {
        vec![
            format!("LD_PRELOAD={}", self.library),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file.to_str().unwrap()),
            // It is looked at each time.
            "FAKETIME_NO_CACHE=1".to_owned(),
            // Clocks that don't jump on a host don't here.
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        ]
    }

    fn set(&self, ahead: &str) {
        std::fs::write(&self.file, ahead).unwrap();
    }
}

/// The library behind `faketime`; `None` where that is not installed.
fn library() -> Option<String> {
    let output = Command::new("faketime")
        .args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"])
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// A receiver is told, and says nothing until the attempt is over. Had its lease ended before, it
/// would have been told again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_clock_jumps_sends_nothing_twice_over_sqlite() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(library) = library() else {
        crate::say(
            "faketime is not installed: the proof that jumps of the clock do no harm is SKIPPED",
        );
        return;
    };
    for jump in ["+1h", "-1h"] {
        let mut clock = None;
        let mut platform = AllInOne::start_under(Path::new("/usr/bin/env"), |directory| {
            let clock = clock.insert(Jumping {
                library: library.clone(),
                file: directory.join("ahead"),
            });
            clock.set("+0");
            let delivery = PROGRAMS.delivery.to_str().unwrap().to_owned();
            let environment = clock.environment().into_iter();
            environment.chain([delivery]).collect()
        })
        .await;
        let receiver = WebhookReceiver::start().await;
        receiver.hold_answers(true);
        let shop = platform.shop().await;
        shop.subscribe(receiver.url()).await;
        let delivery = shop.create_delivery().await.unwrap();
        let board = platform.dispatch_board().await;
        board.complete_delivery(&delivery).await;
        receiver.next_notification().await;

        clock.unwrap().set(jump);

        // A token of before is not good by the clock as it is now.
        let shop = platform.shop().await;
        let after = created(&shop.create_delivery().await.unwrap());
        let jumped = after.duration_since(created(&delivery)).as_mins();
        assert!(
            (55..=65).contains(&jumped.abs()),
            "{jump}: {jumped} minutes"
        );
        let tried = once_tried(&shop).await;
        assert_eq!(tried["attempts"][0]["failure"], "timeout");
        assert!(
            receiver.so_far().await.is_empty(),
            "told again after {jump}"
        );
        receiver.hold_answers(false);
        assert!(platform.server.terminate().await.success());
    }
}

fn created(delivery: &Value) -> Timestamp {
    let created = delivery["pickup"]["createdAt"].as_str();
    created.unwrap().parse().unwrap()
}

/// The shop's one notification, once its first attempt has ended and is written down.
async fn once_tried(shop: &Caller) -> Value {
    let webhooks = shop.get("/api/webhooks").await.unwrap();
    let webhook = webhooks["hydra:member"][0]["@id"].as_str().unwrap();
    let path = format!("{webhook}/notifications");
    let tried = async {
        loop {
            let told = shop.get(&path).await.unwrap();
            let told = told["hydra:member"][0]["@id"].as_str().unwrap();
            let read = shop.get(told).await.unwrap();
            if read["attempts"].get(0).is_some() {
                return read;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(DEADLINE, tried)
        .await
        .expect("an attempt ends at its deadline")
}
