//! TLS between the programs of a platform: what its files hold, and their change while a
//! program runs.

mod files;
mod watched;

pub use files::{Error, authorities, certificates, identity_mistake, private_key, provider};
pub use watched::Watched;
