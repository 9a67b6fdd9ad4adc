//! TLS between the programs of a platform: reads PEM files.

mod files;

pub use files::{Error, authorities, certificates, identity_error, private_key, provider};
