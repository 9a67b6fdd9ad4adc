//! The roles a test can play: a shop's program, a courier, an operator, a receiver of webhooks.
//!
//! ```text
//! use serde_json::json;
//! use crate::harness::{Platform, WebhookReceiver};
//!
//! on_both_databases! {
//!     async fn a_new_task_is_to_be_done(platform: &Platform) {
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
//! Each test has a platform and a database of its own, all in this process, on free loopback
//! ports. Its clock stands still at [`START`] until [`Platform::advance`] moves it.

pub(crate) mod all_in_one;
mod api_client;
pub(crate) mod assertions;
mod awkward_receiver;
mod command;
mod courier;
pub(crate) mod definitions;
mod disabling;
mod documentation;
mod faults;
pub(crate) mod json_schema;
mod operator;
mod platform;
mod postgres;
mod postgres_programs;
pub(crate) mod raw;
mod resource;
mod routing_server;
mod shared_database;
mod webhook_receiver;

pub(crate) use api_client::{Answer, ApiClient};
pub(crate) use awkward_receiver::AwkwardReceiver;
pub(crate) use courier::Courier;
pub(crate) use documentation::Documentation;
pub(crate) use faults::Faults;
pub(crate) use operator::{Operator, bearing, connect};
pub(crate) use platform::{Database, Platform, START};
pub(crate) use resource::{deliver, iri, order};
pub(crate) use routing_server::RoutingServer;
pub(crate) use shared_database::Twin;
pub(crate) use webhook_receiver::{Notification, WebhookReceiver};

/// Runs each claim on SQLite and on PostgreSQL, as the tests `<claim>::sqlite` and
/// `<claim>::postgres`. A claim is an `async fn` that takes `&Platform`.
macro_rules! on_both_databases {
    ($($(#[$attribute:meta])* async fn $claim:ident($platform:ident: $type:ty $(,)?) $body:block)+) => {$(
        $(#[$attribute])*
        mod $claim {
            use super::*;

            async fn claim($platform: $type) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let database = $crate::harness::Database::sqlite();
                let platform = $crate::harness::Platform::start(database).await;
                claim(&platform).await;
                platform.stop().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let Some(database) = $crate::harness::Database::postgres() else {
                    return;
                };
                let platform = $crate::harness::Platform::start(database).await;
                claim(&platform).await;
                platform.stop().await;
            }
        }
    )+};
}
