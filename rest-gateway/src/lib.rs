//! Translates the REST API into gRPC calls to core. Stateless: core decides and stores.
//!
//! Path of a request: `admission` → `service` → `stack` → `pipeline` → `routes` → one file of
//! `resources` → `core_pool`. Every failure is an `error::Error`, rendered by
//! `representation::problem`.

mod config;
mod observer;
mod platform;
mod service;
mod stack;

mod pipeline;
mod rate_limits;
mod routes;

mod api_description;
mod body;
mod body_reader;
mod core_pool;
mod error;
#[cfg(fuzzing)]
pub mod fuzz;
mod idempotency;
mod representation;
mod request;
mod resources;
mod violations;

pub use ::rate_limits::RateLimit;
pub use config::{Config, RateLimitConfig, TlsConfig};
pub use core_client::{CoreConfig, CoreUrl};
pub use iso_currency::Currency;
pub use observer::AccessLog;
pub use platform::{PlatformConfig, map_center};
pub use representation::messages::translate as translate_message;
pub use resources::deliveries::draft::read as read_delivery_draft;
pub use service::RestGateway;
pub use violations::ViolationCollector;
