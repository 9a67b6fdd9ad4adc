//! Why a database can't be opened, in a sentence for whoever can mend it. Never tells the
//! password.

use std::{io, str::FromStr as _};

use sea_orm::{
    DbErr, RuntimeErr,
    sqlx::{self, postgres::PgConnectOptions},
};

use super::Error;

/// The failure to open the database of a URL, told as what to do about it.
pub(super) fn of_database(url: &str, error: Error) -> Error {
    let (Error::Unavailable(cause) | Error::Database(cause)) = &error else {
        return error;
    };
    let sentence = if url.starts_with("sqlite:") {
        Some(of_sqlite(url, cause))
    } else {
        driver_error(cause).and_then(|cause| of_postgres(url, cause))
    };
    sentence.map_or(error, Error::Unsuitable)
}

fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

fn of_sqlite(url: &str, cause: &DbErr) -> String {
    let file = url.trim_start_matches("sqlite:").trim_start_matches("//");
    let file = file.split('?').next().unwrap_or(file);
    let code = driver_error(cause)
        .and_then(sqlx::Error::as_database_error)
        .and_then(|error| error.code()?.parse::<u32>().ok());
    // Extended codes have the primary one in their low byte.
    match code.map(|code| code & 0xff) {
        Some(14) => format!(
            "the SQLite file {file} cannot be opened: its directory must be there and this user's to write; `?mode=rwc` at the end of the URL makes a new file"
        ),
        Some(26) => format!("the file {file} is no SQLite database: name another, or move it away"),
        Some(8) => format!("the SQLite file {file} is not this user's to write"),
        _ => format!("the SQLite file {file} cannot be used: {cause}"),
    }
}

fn of_postgres(url: &str, cause: &sqlx::Error) -> Option<String> {
    let options = match PgConnectOptions::from_str(url) {
        Ok(options) => options,
        Err(error) => {
            return Some(format!(
                "its URL cannot be read ({error}): write it as postgres://USER@HOST:PORT/DATABASE"
            ));
        }
    };
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    let place = match options.get_socket() {
        Some(directory) => directory.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let sentence = match cause {
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
            format!(
                "nothing answers at {place}: is PostgreSQL there, and does the way to it let us through?"
            )
        }
        sqlx::Error::Io(error) => {
            format!(
                "no PostgreSQL answers at {place} ({error}): start it, or correct the database's URL"
            )
        }
        sqlx::Error::Tls(error) => {
            format!(
                "PostgreSQL at {place} cannot be spoken to over TLS ({error}): see sslmode and sslrootcert in the database's URL"
            )
        }
        sqlx::Error::Database(error) => {
            let error = error.message();
            match cause.as_database_error()?.code()?.as_ref() {
                "28P01" => format!(
                    "PostgreSQL at {place} refuses the password of the user {user}: correct it in PGPASSWORD, PGPASSFILE, DELIVERY_DATABASE_URL or --database-url-file"
                ),
                "28000" => format!(
                    "PostgreSQL at {place} does not let the user {user} in ({error}): create the role, correct the user in the database's URL, or see pg_hba.conf"
                ),
                "3D000" => format!(
                    "PostgreSQL at {place} has no database {database}: create it (createdb), or correct its name in the database's URL"
                ),
                "53300" => format!(
                    "PostgreSQL at {place} has no connection left: raise max_connections, or have fewer cores"
                ),
                "57P03" => format!("PostgreSQL at {place} is starting or ending: try again"),
                _ => format!("PostgreSQL at {place} refuses: {error}"),
            }
        }
        _ => return None,
    };
    Some(sentence)
}

#[cfg(test)]
mod tests {
    use super::super::Storage;

    #[tokio::test]
    async fn what_is_wrong_with_an_sqlite_file_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let shown = directory.path().display();
        std::fs::write(
            directory.path().join("notes"),
            "no database, but long enough",
        )
        .unwrap();

        for (url, expected) in [
            (
                format!("sqlite://{shown}/nowhere/x?mode=rwc"),
                format!(
                    "the SQLite file {shown}/nowhere/x cannot be opened: its directory must be there and this user's to write; `?mode=rwc` at the end of the URL makes a new file"
                ),
            ),
            (
                format!("sqlite://{shown}/x"),
                format!(
                    "the SQLite file {shown}/x cannot be opened: its directory must be there and this user's to write; `?mode=rwc` at the end of the URL makes a new file"
                ),
            ),
            (
                format!("sqlite://{shown}/notes"),
                format!(
                    "the file {shown}/notes is no SQLite database: name another, or move it away"
                ),
            ),
        ] {
            let error = Storage::connect(&url).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn a_postgres_that_is_not_there_is_named_without_its_password() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = free.local_addr().unwrap();
        drop(free);

        let url = format!("postgres://delivery:secret@{addr}/delivery");
        let error = Storage::connect(&url).await.unwrap_err();

        assert_eq!(
            error.to_string(),
            format!(
                "no PostgreSQL answers at {addr} (Connection refused (os error 111)): start it, or correct the database's URL"
            )
        );
    }
}
