//! The truth of the platform: every rule is in `domain`, every row in `storage`, every use case
//! in `grpc`.

mod access_token;
mod bootstrap;
mod config;
mod connections;
mod demo;
mod error;
mod grpc;
mod metrics;
mod patience;
mod readiness;
pub mod routing;
mod service;
mod vault;

pub use bootstrap::{Bootstrapped, Credentials, bootstrap};
pub use config::{Config, PlatformConfig, TlsConfig, WebhookConfig};
pub use demo::Demo;
pub use process::clock::Clock;
pub use routing::RouterConfig;
pub use service::{CoreService, StartError};
