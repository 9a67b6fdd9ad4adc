//! The roles of the tests: shop client, courier, operator, webhook receiver.
//!
//! ```text
//! use serde_json::json;
//! use crate::harness::{Platform, WebhookReceiver};
//!
//! on_both_databases! {
//!     async fn a_new_task_has_status_todo(platform: &Platform) {
//!         let client = platform.client().await;
//!
//!         let delivery = client.create_delivery(json!({"dropoff": {…}})).await;
//!
//!         let task = client.get(delivery["dropoff"]["@id"].as_str().unwrap()).await;
//!         assert_eq!((task.status, &task.json["status"]), (200, &json!("TODO")));
//!     }
//! }
//! ```
//!
//! Each test has its own platform and database, in this process and on free loopback ports. The
//! clock stays at [`platform::START`] until [`Platform::advance`] moves it.

pub(crate) mod all_in_one;
mod api_client;
pub(crate) mod assertions;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
pub(crate) mod attacks;
pub(crate) mod browser;
mod command;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
mod courier;
pub(crate) mod definitions;
mod documentation;
mod eventually;
pub(crate) mod grpc;
pub(crate) mod image;
mod installed;
pub(crate) mod json_schema;
mod lossy_proxy;
mod mismatches;
mod operator;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
mod pgbouncer;
pub(crate) mod plans;
mod platform;
mod postgres;
mod postgres_programs;
mod prerequisites;
pub(crate) mod raw;
pub(crate) mod raw_connection;
mod reserved_addr;
mod resource;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
mod resource_script;
mod response;
mod sql;
pub(crate) mod statements;
pub(crate) mod store_rule;
pub(crate) mod token;
mod translations;
mod upstream_server;
mod webhook_receiver;

pub(crate) use api_client::ApiClient;
pub(crate) use command::run_operator_command;
pub(crate) use courier::Courier;
pub(crate) use documentation::Documentation;
pub(crate) use eventually::eventually;
pub(crate) use lossy_proxy::LossyProxy;
pub(crate) use mismatches::Mismatches;
pub(crate) use operator::Operator;
pub(crate) use platform::{Database, Platform};
pub(crate) use reserved_addr::reserve_addr;
pub(crate) use resource::{UNKNOWN_ID, deliver, draft, iri, short_draft, wait_for_price};
pub(crate) use response::Response;
pub(crate) use sql::{run_sql, stored_bytes, stored_text};
pub(crate) use upstream_server::UpstreamServer;
pub(crate) use webhook_receiver::{Notification, WebhookReceiver};

/// Runs each test on SQLite and on PostgreSQL, as `<name>::sqlite` and `<name>::postgres`. A test
/// is an `async fn` that takes `&Platform`.
macro_rules! on_both_databases {
    ($($(#[$attribute:meta])* async fn $name:ident($platform:ident: $type:ty $(,)?) $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn test($platform: $type) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let database = $crate::harness::Database::sqlite();
                let platform = $crate::harness::Platform::start(database).await;
                test(&platform).await;
                platform.stop().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let Some(database) = $crate::harness::Database::postgres() else {
                    return;
                };
                let platform = $crate::harness::Platform::start(database).await;
                test(&platform).await;
                platform.stop().await;
            }
        }
    )+};
}
