//! TLS between the programs of a platform: reads PEM files, and reloads them when they change.

mod files;
mod reloading;

pub use files::{Error, authorities, certificates, identity_error, private_key, provider};
pub use reloading::Reloading;
