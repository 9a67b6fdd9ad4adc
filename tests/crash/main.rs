//! The platform in parts, and what is left of it after every way to end it: real processes on a
//! PostgreSQL or an SQLite that is killed too.
//!
//! Each test says on stderr what it counted. Without more it takes seconds;
//! `DELIVERY_CRASH_SECONDS` gives the killing that long, and `DELIVERY_CRASH_SEED` another order
//! of events.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod all_in_one;
mod caller;
mod cluster;
mod disk;
mod dispatcher;
mod event_log;
mod guardian;
mod load;
mod oracle;
mod postgres;
mod program;
mod random;
mod receiver;
mod server;
mod session;
mod statements;
mod wire;

#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/api_client.rs"]
mod api_client;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/documentation.rs"]
mod documentation;
#[path = "../e2e/harness/json_schema.rs"]
mod json_schema;
#[path = "../e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/webhook_receiver.rs"]
mod webhook_receiver;

use api_client::Answer;
use documentation::Documentation;

mod across_cores;
mod away;
mod clock;
mod crowd;
mod disks;
mod ending;
mod flushing;
mod killing;
mod metrics;
mod races;
mod refilling;
mod refusing;
mod restarting;
mod round_trips;
mod tls;
mod webhooks;

/// Held by each test: they measure times, on machines with few processors.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Past the test runner's capture: figures are what some of these tests are for.
fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "*** {text}");
}
