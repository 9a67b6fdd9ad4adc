//! The front door: translates the REST API into gRPC; decides nothing, stores nothing.
//!
//! A request's way: `service` → `stack` → `routes` → one file of `resources` → `core`; every
//! failure on it is an `error::Error`, turned into an answer by `problem` alone.

mod activity;
mod config;
mod platform;
mod service;
mod stack;

mod compression;
mod cors;
mod head;
mod rescue;
mod routes;

mod body;
mod client_words;
mod collection;
mod conditional;
mod core;
mod error;
mod error_codes;
mod idempotency;
mod json;
mod json_ld;
mod media_type;
mod payload;
mod problem;
mod rate_limits;
mod report;
mod request;
mod resources;
mod vocabulary;

pub use config::Config;
pub use core_client::{CoreConfig, CoreUrl};
pub use iso_currency::Currency;
pub use payload::Payload;
pub use platform::{LatLng, PlatformConfig};
pub use rate_limits::{RateLimit, RateLimitConfig};
pub use service::RestGateway;
