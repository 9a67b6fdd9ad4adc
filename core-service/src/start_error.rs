//! Errors of startup and serving.

use std::{net::SocketAddr, path::PathBuf};

use geocoding::gazetteer::ImportError;
use process::{listen::ListenError, secret_file, tls};

use crate::{
    error::Error,
    master_keys::{self, KeyId},
    routing::OsrmError,
};

/// The reason why a core cannot start or stops.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(
        "gRPC on {addr} would send tokens and secrets unencrypted: serve it over TLS (core-service has --tls-certificate and --tls-key, delivery has --grpc-tls-certificate and --grpc-tls-key), listen on a loopback address, or set --allow-plaintext"
    )]
    Plaintext { addr: SocketAddr },
    #[error("cannot serve gRPC over TLS")]
    Tls(#[from] tls::Error),
    #[error(
        "no database URL is configured: set DELIVERY_DATABASE_URL, --database-url or --database-url-file"
    )]
    NoDatabase,
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
    #[error(
        "this database belongs to another master key than {path}: {}, or the database that belongs to this key",
        if *.all_in_one {
            format!("put its own into that file, from a backup or {}.removed, or name the right data directory with --data-dir", .path.display())
        } else {
            "name the right file with --master-key-file".to_owned()
        }
    )]
    WrongMasterKey { path: PathBuf, all_in_one: bool },
    #[error(
        "secrets of this database are encrypted with the master key {id}, which {path} does not contain: add its line to that file, from {path}.removed, another core's file or a backup"
    )]
    IncompleteMasterKeys { path: PathBuf, id: KeyId },
    #[error(
        "this database has a master key, but {path} does not exist: restore it from your backup, or name the right {}",
        if *.all_in_one {
            "data directory with --data-dir"
        } else {
            "file with --master-key-file"
        }
    )]
    NoMasterKey { path: PathBuf, all_in_one: bool },
    #[error("cannot load the token signing keys")]
    SigningKeys(#[source] Error),
    #[error("cannot recover the leases of a stopped process")]
    Leases(#[source] Error),
    #[error("cannot set up TLS for geocoders")]
    GeocoderTls(#[source] rustls::Error),
    #[error("cannot import the addresses of the demo")]
    Addresses(#[from] ImportError),
    #[error("cannot use the OSRM server")]
    Router(#[from] OsrmError),
    #[error("cannot create the first API clients")]
    Bootstrap(#[source] Error),
    #[error(
        "this platform has been set up already, with the operator's client {api_key}: use its secret, or create further clients for operators and dispatchers with core-service bootstrap --again if that secret is lost"
    )]
    AlreadyBootstrapped { api_key: String },
    #[error("cannot serve gRPC")]
    Serve(#[from] tonic::transport::Error),
    #[error("cannot serve gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}
