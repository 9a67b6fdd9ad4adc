//! Errors of startup and serving.

use geocoding::gazetteer::ImportError;
use process::{listen::ListenError, secret_file, tls};

use crate::{error::Error, secrets::master_keys};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What is missing or wrong, and what to do about it.
    #[error("{0}")]
    Misconfigured(String),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot serve gRPC over TLS")]
    Tls(#[from] tls::Error),
    #[error("cannot read the database URL from its file")]
    DatabaseUrlFile(#[from] secret_file::Error),
    #[error("cannot open the database")]
    Database(#[from] storage::Error),
    #[error(transparent)]
    RefusedUrl(#[from] storage::RefusedUrl),
    #[error("cannot open the database: {}", storage::NOT_BOOTSTRAPPED)]
    NotBootstrapped,
    #[error(transparent)]
    MasterKey(#[from] master_keys::Error),
    #[error("cannot load the token signing keys")]
    SigningKeys(#[source] Error),
    #[error("cannot recover the leases of a stopped process")]
    Leases(#[source] Error),
    #[error("cannot set up TLS for geocoders")]
    GeocoderTls(#[source] rustls::Error),
    #[error("cannot import the addresses of the demo")]
    Addresses(#[from] ImportError),
    #[error("cannot use the OSRM server")]
    Router(#[source] anyhow::Error),
    #[error("cannot create the first API clients")]
    Bootstrap(#[source] Error),
    #[error("cannot serve gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}
