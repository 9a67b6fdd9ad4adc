//! The flags that name a database, and requirements on it before it is opened: a file that other users
//! cannot read, or a server whose identity is verified.

use std::{
    fs::OpenOptions, net::IpAddr, os::unix::fs::OpenOptionsExt as _, path::PathBuf,
    str::FromStr as _,
};

use clap::Args;
use process::{redacted::Redacted, secret_file};
use sea_orm::sqlx::{
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

/// Why a `PostgreSQL` URL is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedUrl {
    /// The server is on another host, and its identity would not be verified.
    #[error(
        "the database's host {host} would not be verified, and the connection could be read: set sslmode=verify-full (and sslrootcert, for an authority of your own) in the database URL, or set --allow-unverified-database"
    )]
    Unverified { host: String },
    /// The driver would take the names of several hosts for one, and ignore `target_session_attrs`.
    #[error(
        "the database URL has {0}, which is not supported: name one host that always leads to the primary, such as a virtual address, or a proxy that follows it (HAProxy with Patroni)"
    )]
    SeveralHosts(&'static str),
}

/// Which database a program opens.
#[derive(Args, Clone, Debug, Default)]
pub struct DatabaseConfig {
    /// Database URL: `postgres://…` or `sqlite://FILE?mode=rwc`. Other users can see the flags of a
    /// process, so set a password by `DELIVERY_DATABASE_URL`, `PGPASSWORD`, the file named by
    /// `PGPASSFILE`, or `--database-url-file`. Default: in the all-in-one a file of the data directory,
    /// otherwise none: it or the file is required. Example:
    /// `postgres://delivery@db.internal/delivery?sslmode=verify-full`.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        conflicts_with = "database_url_file"
    )]
    pub database_url: Option<Redacted<String>>,

    /// File with the database URL, readable only by its owner. Default: none. Example:
    /// `/etc/delivery/database-url`.
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    pub database_url_file: Option<PathBuf>,

    #[command(flatten)]
    pub database_server_verification: DatabaseServerVerification,
}

impl DatabaseConfig {
    /// The URL, password included; `None` if none is configured.
    pub fn url(&self) -> Result<Option<String>, secret_file::Error> {
        match (&self.database_url, &self.database_url_file) {
            (Some(url), _) => Ok(Some(url.expose().clone())),
            (None, Some(file)) => Ok(Some(secret_file::read(file)?.trim().to_owned())),
            (None, None) => Ok(None),
        }
    }
}

/// Whether servers must be verified.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DatabaseServerVerification {
    /// Connect to a `PostgreSQL` server on another host without verifying its certificate
    /// (`sslmode=verify-full`). Default: no. Example: `DELIVERY_ALLOW_UNVERIFIED_DATABASE=yes`.
    #[arg(long, env = "DELIVERY_ALLOW_UNVERIFIED_DATABASE")]
    pub allow_unverified_database: bool,
}

impl DatabaseServerVerification {
    /// Fails if a `PostgreSQL` URL names several hosts, or a server on another host that would not be
    /// verified. Invalid URLs pass: connecting reports them.
    pub fn check(self, url: &str) -> Result<(), RefusedUrl> {
        if !url.starts_with("postgres") {
            return Ok(());
        }
        if let Some(found) = several_hosts(url) {
            return Err(RefusedUrl::SeveralHosts(found));
        }
        if self.allow_unverified_database {
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
        Err(RefusedUrl::Unverified {
            host: host.to_owned(),
        })
    }
}

/// The part of a URL that is meant for several hosts. Searches the text, since a URL with a port for
/// each host cannot be parsed.
fn several_hosts(url: &str) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = before_query.split('/').next().unwrap_or_default();
    let hosts = authority
        .rsplit_once('@')
        .map_or(authority, |(_, hosts)| hosts);
    let is_list = |text: &str| text.contains(',') || text.contains("%2C") || text.contains("%2c");
    if is_list(hosts) {
        return Some("several hosts");
    }
    query.split('&').find_map(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "target_session_attrs" => Some("target_session_attrs"),
            "host" | "hostaddr" | "port" if is_list(value) => Some("several hosts"),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postgres_server_on_another_host_must_be_verified() {
        for (url, refused) in [
            ("postgres://u@db.internal/d", true),
            ("postgresql://10.0.0.1:5433/d", true),
            ("postgres://db.internal/d?sslmode=require", true),
            ("postgres://db.internal/d?sslmode=verify-ca", true),
            ("postgres://localhost/d?host=db.internal", true),
            ("postgres://db.internal/d?sslmode=verify-full", false),
            ("postgres://localhost/d", false),
            ("postgres://127.0.0.1/d", false),
            ("postgres://[::1]/d", false),
            ("postgres://localhost/d?host=/run/postgresql", false),
            ("postgres://%2Frun%2Fpostgresql/d", false),
            ("sqlite://db.internal?mode=rwc", false),
        ] {
            let verification = DatabaseServerVerification::default();
            assert_eq!(verification.check(url).is_err(), refused, "{url}");
        }
    }

    #[test]
    fn a_postgres_url_for_several_hosts_is_refused() {
        for (url, refused) in [
            ("postgresql://a,b/d", Some("several hosts")),
            ("postgres://u:p@a:5432,b:5433/d", Some("several hosts")),
            ("postgres://u@a%2Cb/d", Some("several hosts")),
            ("postgres:///d?user=u&host=a,b", Some("several hosts")),
            ("postgres://h/d?hostaddr=::1%2c::2", Some("several hosts")),
            ("postgres://localhost/d?port=1,2", Some("several hosts")),
            (
                "postgres://h/d?sslmode=verify-full&target_session_attrs=read-write",
                Some("target_session_attrs"),
            ),
            ("postgres://u,v:p,q@localhost/a,b", None),
            ("postgres://localhost/d?options=-csearch_path=a,b", None),
            ("sqlite:///a,b?mode=rwc", None),
        ] {
            // Whether or not servers are verified.
            for allow_unverified_database in [false, true] {
                let checked = DatabaseServerVerification {
                    allow_unverified_database,
                }
                .check(url);
                let expected = refused.map_or(Ok(()), |found| Err(RefusedUrl::SeveralHosts(found)));
                assert_eq!(checked, expected, "{url}");
            }
        }
    }
}
