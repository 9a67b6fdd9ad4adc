//! Requirements on a database before it is opened: a file that other users cannot read, or a server
//! whose identity is verified.

use std::{
    fs::OpenOptions, net::IpAddr, os::unix::fs::OpenOptionsExt as _, path::PathBuf,
    str::FromStr as _,
};

use clap::Args;
use sea_orm_migration::sea_orm::sqlx::{
    postgres::{PgConnectOptions, PgSslMode},
    sqlite::SqliteConnectOptions,
};

/// The file of an `SQLite` URL; `None` for a database in memory.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    let is_file = url.starts_with("sqlite:") && !url.contains(":memory:");
    let options = SqliteConnectOptions::from_str(url).ok();
    let file = options.filter(|_| is_file)?.get_filename().to_owned();
    Some(file)
}

/// The file that opening an `SQLite` URL would create.
pub fn new_sqlite_file(url: &str) -> Option<PathBuf> {
    sqlite_file(url).filter(|file| url.contains("mode=rwc") && !file.exists())
}

/// Creates the file of an `SQLite` URL, unless it exists, readable only by its owner. `SQLite`
/// would follow the umask; it gives its other files (`-wal`, `-shm`) the mode of this one.
pub fn create_sqlite_file(url: &str) {
    if let Some(file) = new_sqlite_file(url) {
        let mut options = OpenOptions::new();
        // SQLite fails for the same cause, and reports it.
        let _ = options.write(true).create_new(true).mode(0o600).open(file);
    }
}

/// The server is on another host, and its identity would not be verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database's host {host} would not be verified, and the connection could be read: set sslmode=verify-full (and sslrootcert, for an authority of your own) in the database URL, or set --allow-unverified-database"
)]
pub struct UnverifiedDatabase {
    host: String,
}

/// Whether servers must be verified.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DatabaseVerification {
    /// Connect to a `PostgreSQL` server on another host without verifying its certificate
    /// (`sslmode=verify-full`). Default: no. Example: `DELIVERY_ALLOW_UNVERIFIED_DATABASE=yes`.
    #[arg(long, env = "DELIVERY_ALLOW_UNVERIFIED_DATABASE")]
    pub allow_unverified_database: bool,
}

impl DatabaseVerification {
    /// Fails if a `PostgreSQL` server on another host would not be verified. Invalid URLs pass:
    /// connecting reports them.
    pub fn check(self, url: &str) -> Result<(), UnverifiedDatabase> {
        if self.allow_unverified_database || !url.starts_with("postgres") {
            return Ok(());
        }
        let Ok(options) = PgConnectOptions::from_str(url) else {
            return Ok(());
        };
        let host = options.get_host().trim_matches(['[', ']']);
        let is_local = options.get_socket().is_some()
            || host.starts_with('/')
            || host == "localhost"
            || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if is_local || matches!(options.get_ssl_mode(), PgSslMode::VerifyFull) {
            return Ok(());
        }
        Err(UnverifiedDatabase {
            host: host.to_owned(),
        })
    }
}
