//! TLS between the programs of a platform and with other servers: certificate authorities, keys and
//! certificates.

mod files;
mod server;

pub use files::{
    Error, authorities, certificates, client, identity_error, private_key, provider,
    system_authorities,
};
pub use server::{Server, ServerFiles};
