//! Errors of the database, classified by what a caller can do about them.

use migrations::{driver_error, explain_connect_error, explain_pooler, is_transient};
use sea_orm::{DbErr, SqlErr, sqlx};
use tokio::sync::mpsc::error::TrySendError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the database failed")]
    Database(#[source] DbErr),
    /// Not reachable, shutting down, out of connections or disk space: a retry may succeed.
    #[error("the database is not available")]
    Unavailable(#[source] DbErr),
    /// `SQLSTATE` 40001 (serialization failure) or 40P01 (deadlock). The transaction is rolled
    /// back and can be retried.
    #[error("the transaction conflicts with another")]
    SerializationFailure(#[source] DbErr),
    /// It is not known whether the write happened.
    #[error("the database did not respond in time")]
    Timeout,
    /// The queue of writes is full.
    #[error("too many writes are waiting")]
    Overloaded,
    /// It is not known whether the write happened.
    #[error("the writer stopped before it responded")]
    WriterStopped,
    /// The group commit was rolled back; its writes are retried one by one.
    #[error("the transaction was rolled back")]
    RolledBack,
    #[error("the write-ahead log cannot be truncated")]
    LogNotTruncated,
    /// A row that this program can't have written.
    #[error("{table} has an inconsistent row: {reason}")]
    Inconsistent { table: &'static str, reason: String },
    #[error("{0}")]
    Misconfigured(String),
    /// Why the database cannot be used yet, and what to do about it. Waiting may mend it.
    #[error("{0}")]
    NotReady(String),
    /// A closure of a write or a shared statement panicked, with this message.
    #[error("a write or a read panicked: {0}")]
    Panicked(String),
}

/// The error of a write: a storage error, or an error of its work.
pub trait WriteError: From<Error> + Send + 'static {
    /// The storage error, if this is one.
    fn as_storage(&self) -> Option<&Error>;
}

impl WriteError for Error {
    fn as_storage(&self) -> Option<&Error> {
        Some(self)
    }
}

impl Error {
    pub fn inconsistent(table: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Inconsistent {
            table,
            reason: reason.to_string(),
        }
    }

    /// The cause of a failure to connect and what to do about it, if known.
    pub(super) fn explained(self, url: &str) -> Self {
        let (Self::Unavailable(cause) | Self::Database(cause)) = &self else {
            return self;
        };
        match explain_connect_error(url, cause) {
            Some(reason) if !url.starts_with("sqlite:") && is_transient(cause) => {
                Self::NotReady(reason)
            }
            Some(reason) => Self::Misconfigured(reason),
            None => self,
        }
    }

    /// Whether waiting may mend what keeps a core from opening `PostgreSQL`.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotReady(_)
                | Self::Unavailable(_)
                | Self::Timeout
                | Self::SerializationFailure(_)
        ) || self.is_lock_timeout()
    }

    /// Whether the wait for a lock timed out (`SQLSTATE` 55P03).
    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Database(error) if has_code(error, |code| code == "55P03"))
    }

    /// Whether the database accepts no writes (`SQLSTATE` 25006, `SQLite` READONLY).
    pub fn is_read_only(&self) -> bool {
        let is_read_only = |code: &str| code == "25006" || is_sqlite_code(code, &[8]);
        matches!(self, Self::Unavailable(error) if has_code(error, is_read_only))
    }

    /// Whether an `SQLite` database cannot be written: full, read-only, an I/O error, or a file
    /// that cannot be opened. Not if another process locks it.
    pub fn is_unwritable(&self) -> bool {
        let is_locked = |code: &str| is_sqlite_code(code, &[5, 6]);
        matches!(self, Self::Unavailable(error) if !has_code(error, is_locked))
    }

    /// Whether `PostgreSQL` rejects a value (`SQLSTATE` classes 22, 23 and 54).
    pub(super) fn is_rejected_value(&self) -> bool {
        let is_class = |code: &str| is_of_class(code, &["22", "23", "54"]);
        matches!(self, Self::Database(error) if has_code(error, is_class))
    }

    /// Whether a row with the same unique key exists.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Database(error) if is_unique_violation(error))
    }
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        if let Some(reason) = explain_pooler(&error) {
            Self::Misconfigured(reason)
        } else if is_unavailable(&error) {
            Self::Unavailable(error)
        } else if is_serialization_failure(&error) {
            Self::SerializationFailure(error)
        } else {
            Self::Database(error)
        }
    }
}

/// The error of a write that its queue does not take.
impl<T> From<TrySendError<T>> for Error {
    fn from(error: TrySendError<T>) -> Self {
        match error {
            TrySendError::Full(_) => Self::Overloaded,
            TrySendError::Closed(_) => Self::WriterStopped,
        }
    }
}

fn has_code(error: &DbErr, is_meant: impl FnOnce(&str) -> bool) -> bool {
    driver_error(error).is_some_and(|error| has_driver_code(error, is_meant))
}

pub(super) fn has_driver_code(error: &sqlx::Error, is_meant: impl FnOnce(&str) -> bool) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|error| error.code().is_some_and(|code| is_meant(&code)))
}

pub(super) fn is_unique_violation(error: &DbErr) -> bool {
    let violation = error.sql_err();
    matches!(violation, Some(SqlErr::UniqueConstraintViolation(_)))
}

pub(super) fn is_serialization_failure(error: &DbErr) -> bool {
    has_code(error, |code| matches!(code, "40001" | "40P01"))
}

fn is_unavailable(error: &DbErr) -> bool {
    matches!(error, DbErr::ConnectionAcquire(_) | DbErr::Conn(_))
        || matches!(
            driver_error(error),
            Some(
                sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
            )
        )
        || has_code(error, is_unavailable_code)
}

/// `PostgreSQL`: 25006 (read-only, as after a failover), class 08 (connection), 53 (out of
/// resources), 57P (operator intervention), 58 (system error).
/// `SQLite` (extended codes, the primary one in the low byte): 5 BUSY, 6 LOCKED, 8 READONLY,
/// 10 IOERR, 13 FULL, 14 CANTOPEN.
fn is_unavailable_code(code: &str) -> bool {
    code == "25006"
        || is_of_class(code, &["08", "53", "57P", "58"])
        || is_sqlite_code(code, &[5, 6, 8, 10, 13, 14])
}

/// Whether a code is an `SQLSTATE`, which has five characters, of one of these classes.
fn is_of_class(code: &str, classes: &[&str]) -> bool {
    code.len() == 5 && classes.iter().any(|class| code.starts_with(class))
}

/// Whether a code is one of `SQLite` whose primary code is one of these.
pub(super) fn is_sqlite_code(code: &str, primary: &[u32]) -> bool {
    code.len() < 5
        && code
            .parse()
            .is_ok_and(|code: u32| primary.contains(&(code & 0xff)))
}

#[cfg(test)]
mod tests {
    use sea_orm::ConnectionTrait as _;

    use super::*;
    use crate::{Storage, fixture, rows};

    /// `SQLSTATE` 22021, a text that is not UTF-8, has the low byte of BUSY.
    #[test]
    fn the_primary_code_of_sqlite_is_the_low_byte_of_a_code_of_fewer_than_five_digits() {
        for (code, is_busy_or_locked) in [
            ("5", true),
            ("6", true),
            ("261", true),
            ("2067", false),
            ("22021", false),
            ("40P1", false),
        ] {
            assert_eq!(is_sqlite_code(code, &[5, 6]), is_busy_or_locked, "{code}");
        }
    }

    /// A function that raises an error with an `SQLSTATE` at its first call, and returns 1 at others.
    async fn fail_once(storage: &Storage, code: &str) -> String {
        let name = format!("fail_once_{}", code.to_lowercase());
        let create = format!(
            "CREATE SEQUENCE {name}_calls;
             CREATE FUNCTION {name}() RETURNS BIGINT LANGUAGE plpgsql AS $$
             BEGIN
                 -- A rollback does not affect a sequence.
                 IF nextval('{name}_calls') = 1 THEN
                     RAISE EXCEPTION 'as asked' USING ERRCODE = '{code}';
                 END IF;
                 RETURN 1;
             END $$"
        );
        storage.reader().execute_unprepared(&create).await.unwrap();
        format!("SELECT {name}()")
    }

    async fn read(storage: &Storage, sql: &str) -> Result<i64, Error> {
        rows::value(storage.reader(), sql).await
    }

    async fn write(storage: &Storage, sql: String) -> Result<i64, Error> {
        let written =
            storage.write(move |transaction| async move { rows::value(&transaction, &sql).await });
        written.await
    }

    #[tokio::test]
    async fn reads_and_writes_are_repeated_after_serialization_failures_and_deadlocks() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        for code in ["40001", "40P01"] {
            let sql = fail_once(&storage, code).await;
            assert_eq!(read(&storage, &sql).await.unwrap(), 1, "{code}");
            let restart = format!(
                "ALTER SEQUENCE fail_once_{}_calls RESTART",
                code.to_lowercase()
            );
            storage.reader().execute_unprepared(&restart).await.unwrap();
            assert_eq!(write(&storage, sql).await.unwrap(), 1, "{code}");
        }
    }

    #[tokio::test]
    async fn other_errors_are_returned_with_what_their_code_means() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        for (code, is_unavailable, is_read_only, is_lock_timeout) in [
            ("25006", true, true, false),
            ("08006", true, false, false),
            ("53100", true, false, false),
            ("57P01", true, false, false),
            ("58030", true, false, false),
            ("57014", false, false, false),
            ("22021", false, false, false),
            ("55P03", false, false, true),
            ("P0001", false, false, false),
        ] {
            let sql = fail_once(&storage, code).await;
            let error = read(&storage, &sql).await.unwrap_err();

            let unavailable = matches!(error, Error::Unavailable(_));
            assert_eq!(unavailable, is_unavailable, "{code}: {error:?}");
            assert_eq!(error.is_read_only(), is_read_only, "{code}: {error:?}");
            assert_eq!(
                error.is_lock_timeout(),
                is_lock_timeout,
                "{code}: {error:?}"
            );
        }
    }
}
