//! The webhook dispatcher: receives notifications on a stream from core, signs and sends them, and
//! reports the outcomes.

mod address_guard;
mod attempt;
mod backoff;
mod config;
mod connections;
mod connector;
mod core_session;
mod in_flight;
mod metrics;
mod reporter;
mod request;
mod resolver;
mod response;
mod send_error;
mod sender;
mod service;
mod signature;
mod stream_opener;
mod test_send;
#[cfg(test)]
mod unresponsive_listener;

pub use config::Config;
pub use core_client::{CoreConfig, CoreUrl};
pub use service::WebhookDispatcher;
