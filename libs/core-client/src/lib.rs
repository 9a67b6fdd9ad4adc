//! Client side of the connection to cores: discovery by host name, TLS, and readable errors.

mod config;
mod connector;
mod core_url;
mod cores;
mod discovery;
mod error_chain;

pub use config::CoreConfig;
pub use connector::ConnectError;
pub use core_url::{CoreAddr, CoreUrl, InvalidCoreUrl};
pub use cores::{Channel, Cores};
pub use discovery::Discovery;
pub use error_chain::{causes, is_caused_by, is_from_core};
