//! TLS between the programs of a platform and with other servers: certificate authorities, keys and
//! certificates.

mod expiry;
mod files;
mod server;

pub use expiry::{EXPIRY_NOTICE, not_after, register_expiry};
pub use files::{
    Error, authorities, certificates, client, identity_error, private_key, provider, setup_error,
    system_authorities,
};
pub use server::{Server, ServerFiles};
