//! The truth of the platform: every rule is in `domain`, every row in `storage`, every use case
//! in `grpc`.

mod access_token;
mod bootstrap;
mod clock;
mod config;
mod connections;
mod demo;
pub mod domain;
mod error;
pub mod geocoding;
mod grpc;
mod metrics;
mod patience;
mod random;
mod readiness;
pub mod routing;
mod service;
mod storage;
pub mod upstream;
mod vault;

pub use bootstrap::{Bootstrapped, Credentials, bootstrap};
pub use clock::Clock;
pub use config::{Config, PlatformConfig, TlsConfig, WebhookConfig};
pub use demo::Demo;
pub use routing::RouterConfig;
pub use service::{CoreService, StartError};
