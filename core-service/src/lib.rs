//! The core of the platform: use cases over gRPC, on the rules of `domain` and the tables of
//! `storage`.
//!
//! Most of its asynchronous functions return boxed futures: the compiler generates the code of other
//! futures once more in each program and test that awaits them.

mod access_token;
mod backup;
mod bootstrap;
mod call_limits;
mod call_observer;
mod call_paths;
mod calls_in_flight;
mod config;
mod demo;
pub mod doctor;
mod error;
mod grpc;
mod lifecycle;
mod master_keys;
mod metrics;
mod platform_config;
mod platform_metrics;
mod rate_limits;
mod readiness;
mod routing;
mod secret_box;
mod service;
mod start_error;
mod startup;
mod tls_config;

pub use backup::{Backup, BackupSource, back_up, partial_path, restore, restoring_path, verify};
pub use bootstrap::{Bootstrapped, Credentials, bootstrap};
pub use config::{
    Config, DEFAULT_DATABASE_CONNECTIONS, DatabaseConfig, DatabaseServerVerification,
    DeliveryConfig, TlsConfig, WebhookConfig,
};
pub use demo::{Demo, OwnClients};
pub use master_keys::{KeyId, MasterKeyCommand};
pub use platform_config::PlatformConfig;
pub use process::clock::Clock;
pub use rate_limits::RateLimitConfig;
pub use routing::{Fallback, RouterConfig};
pub use service::CoreService;
pub use start_error::StartError;
pub use storage::migrate_database;
