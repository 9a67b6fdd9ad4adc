//! The core of the platform: use cases over gRPC, on the rules of `domain` and the tables of
//! `storage`.
//!
//! Most of its asynchronous functions return boxed futures: the compiler generates the code of other
//! futures once more in each program and test that awaits them.

mod auth;
mod backup;
mod bootstrap;
mod call_limits;
mod call_observer;
mod config;
mod demo;
pub mod doctor;
mod error;
mod idempotency;
mod images;
mod messages;
mod metrics;
mod notifications;
mod planning;
mod platform_metrics;
mod readiness;
mod routing;
mod secrets;
mod service;
mod services;
mod startup;
mod wiring;
mod workers;

pub use auth::rate_limits::RateLimitConfig;
pub use backup::{Backup, BackupSource, back_up, partial_path, restore, restoring_path, verify};
pub use bootstrap::{Bootstrapped, ClientFiles, Credentials, bootstrap};
pub use config::{
    Config, DEFAULT_DATABASE_CONNECTIONS, DatabaseConfig, DatabaseServerVerification,
    DeliveryConfig, PlatformConfig, TlsConfig, WebhookConfig,
};
pub use demo::{Demo, OwnClients};
pub use process::clock::Clock;
pub use routing::{Fallback, RouterConfig};
pub use secrets::master_keys::{KeyId, MasterKeyCommand};
pub use service::CoreService;
pub use startup::StartError;
pub use storage::{migrate_database, verification};
