//! The postman: takes what core owes to webhooks off its stream, sends it signed, and reports
//! what came of it.

mod address_guard;
mod answer;
mod backoff;
mod config;
mod connector;
mod core;
mod exchange;
mod holding;
mod ledger;
mod readiness;
mod request;
mod resolver;
mod sender;
mod service;
mod signature;
#[cfg(test)]
mod silent_listener;
mod strays;
mod trust;
mod webhook_tests;

pub use config::{ClientSecret, Config, ConfigError};
pub use core_client::{CoreConfig, CoreUrl};
pub use service::WebhookDispatcher;
