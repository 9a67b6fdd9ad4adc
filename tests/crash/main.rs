//! The platform as separate processes, on PostgreSQL or SQLite: kills, outages, restarts, and what
//! is left afterwards.
//!
//! Tests that measure something print their figures on stderr. By default the tests take seconds;
//! `DELIVERY_CRASH_SECONDS` sets the duration of the tests with faults one after the other
//! (`histories`, `kill_under_load`, `lives`, `soak`), `DELIVERY_CRASH_SEED` the seed of their random choices.
#![expect(clippy::unwrap_used, reason = "a panic fails the test and shows where")]

mod all_in_one;
mod audit;
mod caller;
mod checker;
mod cluster;
mod collector;
mod counting_receiver;
mod disk;
mod dispatcher;
mod event_log;
mod exposition;
mod failure;
mod fault;
mod files;
mod health;
mod load;
mod postgres;
mod postgres_proxy;
mod program;
mod psql_session;
mod random;
mod server;
mod statements;

#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/api_client.rs"]
mod api_client;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/attacks.rs"]
mod attacks;
#[path = "../e2e/harness/courier.rs"]
mod courier;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/documentation.rs"]
mod documentation;
#[path = "../e2e/harness/eventually.rs"]
mod eventually;
#[path = "../e2e/harness/grpc.rs"]
mod grpc;
#[path = "../e2e/harness/installed.rs"]
mod installed;
#[path = "../e2e/harness/json_schema.rs"]
mod json_schema;
#[path = "../e2e/harness/pgbouncer.rs"]
mod pgbouncer;
#[path = "../e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../e2e/harness/prerequisites.rs"]
mod prerequisites;
#[path = "../e2e/harness/reserved_addr.rs"]
mod reserved_addr;
#[path = "../e2e/harness/resource_script.rs"]
mod resource_script;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/response.rs"]
mod response;
#[path = "../e2e/harness/translations.rs"]
mod translations;
#[expect(dead_code, reason = "the e2e tests use the rest of it")]
#[path = "../e2e/harness/webhook_receiver.rs"]
mod webhook_receiver;

use std::time::Duration;

use documentation::Documentation;
use eventually::eventually;
use response::Response;
use tokio::sync::{Semaphore, SemaphorePermit};

mod across_cores;
mod attackers;
mod backup;
mod backup_postgres;
mod bootstrap;
mod capacity_refill;
mod changed_definitions;
mod clock;
mod dashboard;
mod database_outage;
mod disk_failures;
mod docs_page;
mod doctor;
mod documents;
mod example_receivers;
mod fsync;
mod hanging_receivers;
mod health_command;
mod histories;
mod kill_under_load;
mod lives;
mod log_lines;
mod metrics;
mod operator_errors;
mod pooler;
mod readiness;
mod refused_connections;
mod renewal;
mod restarting;
mod round_trips;
mod serialization_conflicts;
mod service_manager;
mod settings;
mod shutdown;
mod soak;
mod startup_errors;
mod startup_postgres;
mod tls;
mod traces;
mod upgrade;
mod webhooks;

/// What a busy machine may add to a guaranteed time.
const SLACK: Duration = Duration::from_secs(2);

/// How many tests may load the machine at a time.
const PROCESSORS: u32 = 2;

static UNUSED_PROCESSORS: Semaphore = Semaphore::const_new(PROCESSORS as usize);

/// For a test that loads the machine, and does not depend on how fast that is.
async fn one_processor() -> SemaphorePermit<'static> {
    UNUSED_PROCESSORS.acquire().await.expect("never closed")
}

/// For a test that measures times, or whose requests fail if they take too long.
async fn all_processors() -> SemaphorePermit<'static> {
    let all = UNUSED_PROCESSORS.acquire_many(PROCESSORS).await;
    all.expect("never closed")
}

/// Prints a figure on stderr, bypassing the test runner's capture.
fn report(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "*** {text}");
}
