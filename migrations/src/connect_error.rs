//! Messages for a database that can't be opened: the cause, and what to do about it. They never
//! contain the password.

use std::{io, str::FromStr as _};

use sea_orm::{
    DbErr, RuntimeErr,
    sqlx::{self, postgres::PgConnectOptions},
};

const SQLITE_READONLY: u32 = 8;
const SQLITE_CANTOPEN: u32 = 14;
const SQLITE_NOTADB: u32 = 26;

/// The cause of a connection error and what to do about it; `None` if there is no better
/// message than the error's own.
pub fn explain_connect_error(url: &str, error: &DbErr) -> Option<String> {
    if url.starts_with("sqlite:") {
        Some(explain_sqlite(url, error))
    } else {
        driver_error(error).and_then(|error| explain_postgres(url, error))
    }
}

/// Whether waiting may mend a connection error of `PostgreSQL`: it, its name or its primary is not there yet, or
/// it starts, stops or has no free connection.
pub fn is_transient(error: &DbErr) -> bool {
    match driver_error(error) {
        Some(sqlx::Error::Io(error)) => error.kind() != io::ErrorKind::PermissionDenied,
        Some(sqlx::Error::Database(error)) => {
            let class = error.code().unwrap_or_default();
            // PgBouncer has one code for all of its refusals.
            let is_final = ["startup parameter", "no such "];
            let is_final = is_final.iter().any(|text| error.message().contains(text));
            ["08", "53", "57P"]
                .iter()
                .any(|prefix| class.starts_with(prefix))
                && !is_final
        }
        Some(error) => is_closed_at_once(error),
        None => false,
    }
}

/// The error of the driver that is the cause.
pub fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

fn explain_sqlite(url: &str, cause: &DbErr) -> String {
    let file = url.trim_start_matches("sqlite:").trim_start_matches("//");
    let file = file.split('?').next().unwrap_or(file);
    let code = driver_error(cause)
        .and_then(sqlx::Error::as_database_error)
        .and_then(|error| error.code()?.parse::<u32>().ok());
    // The low byte of an extended result code is the primary code.
    match code.map(|code| code & 0xff) {
        Some(SQLITE_CANTOPEN) => format!(
            "the SQLite file {file} cannot be opened: its directory must exist and be writable by this user; append `?mode=rwc` to the URL to create the file"
        ),
        Some(SQLITE_NOTADB) => format!(
            "the file {file} is not an SQLite database: name another file, or move this one away"
        ),
        Some(SQLITE_READONLY) => format!("the SQLite file {file} is not writable by this user"),
        _ => format!("the SQLite file {file} cannot be used: {cause}"),
    }
}

fn explain_postgres(url: &str, cause: &sqlx::Error) -> Option<String> {
    let options = match PgConnectOptions::from_str(url) {
        Ok(options) => options,
        Err(error) => {
            return Some(format!(
                "its URL is invalid ({error}): write it as postgres://USER@HOST:PORT/DATABASE"
            ));
        }
    };
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    let server = match options.get_socket() {
        Some(directory) => directory.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let message = match cause {
        _ if is_closed_at_once(cause) => {
            format!(
                "what answers at {server} closes the connection at once: it is not PostgreSQL, or a proxy without a primary; check the proxy's servers, or correct the database's URL"
            )
        }
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
            format!(
                "PostgreSQL at {server} does not respond: check that it runs, and that the network lets this host through"
            )
        }
        sqlx::Error::Io(error) => {
            format!(
                "cannot connect to PostgreSQL at {server} ({error}): start it, or correct the database's URL"
            )
        }
        sqlx::Error::Tls(error) => {
            format!(
                "PostgreSQL at {server} fails the TLS handshake ({error}): check sslmode and sslrootcert in the database's URL"
            )
        }
        sqlx::Error::Database(error) => {
            let error = error.message();
            match cause.as_database_error()?.code()?.as_ref() {
                "28P01" => format!(
                    "PostgreSQL at {server} rejects the password of the user {user}: correct it in PGPASSWORD, PGPASSFILE, DELIVERY_DATABASE_URL or --database-url-file"
                ),
                "28000" => format!(
                    "PostgreSQL at {server} rejects the user {user} ({error}): create the role, correct the user in the database's URL, or change pg_hba.conf"
                ),
                "3D000" => format!(
                    "PostgreSQL at {server} has no database {database}: create it (createdb), or correct its name in the database's URL"
                ),
                "53300" => format!(
                    "PostgreSQL at {server} has no free connection ({error}): raise max_connections or the limit of the role, or run fewer cores"
                ),
                // PgBouncer's, which accepts few startup parameters.
                "08P01" if error.contains("startup parameter") => format!(
                    "the pooler at {server} refuses the connection ({error}): add the parameter to ignore_startup_parameters in pgbouncer.ini"
                ),
                "57P03" => {
                    format!("PostgreSQL at {server} is starting or shutting down: try again")
                }
                _ => format!("PostgreSQL at {server} refuses the connection: {error}"),
            }
        }
        _ => return None,
    };
    Some(message)
}

fn is_closed_at_once(error: &sqlx::Error) -> bool {
    match error {
        // How sqlx reports that the connection was closed instead of an answer to SSLRequest.
        sqlx::Error::Protocol(error) => error.contains("SSLRequest: 0x00"),
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        _ => false,
    }
}
