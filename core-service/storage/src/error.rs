//! What can go wrong with the database, sorted by what a caller can do about it.

use sea_orm::{DbErr, RuntimeErr, sqlx};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database could not do it")]
    Database(#[source] DbErr),
    /// Not there, shutting down, out of connections or of disk: later may do.
    #[error("the database is not available")]
    Unavailable(#[source] DbErr),
    /// It lost against another transaction (`SQLSTATE` 40001 serialization failure, 40P01
    /// deadlock), has done nothing, and may simply be tried again.
    #[error("the transaction lost against another")]
    LostRace(#[source] DbErr),
    /// The database stands still. Whether a write happened is not known.
    #[error("the database did not answer in time")]
    Late,
    /// More writes wait than may wait.
    #[error("too many writes are waiting")]
    Overloaded,
    /// Whether the write happened is not known.
    #[error("the writer ended before it answered")]
    WriterEnded,
    /// The shared transaction was given up; its members are tried one by one.
    #[error("the transaction was rolled back")]
    RolledBack,
    /// A row that this program can't have written.
    #[error("{table} has a row that makes no sense: {what}")]
    Inconsistent { table: &'static str, what: String },
    #[error("{0}")]
    Unsuitable(String),
    /// The work of a write panicked, with this message.
    #[error("a write panicked: {0}")]
    Panicked(String),
}

/// What the work of a write may fail with: a storage error, or one of the caller's own.
pub trait WriteError: From<Error> + Send + 'static {
    /// The storage error that this is, if it is one.
    fn as_storage(&self) -> Option<&Error>;
}

impl WriteError for Error {
    fn as_storage(&self) -> Option<&Error> {
        Some(self)
    }
}

impl Error {
    pub fn inconsistent(table: &'static str, what: impl std::fmt::Display) -> Self {
        Self::Inconsistent {
            table,
            what: what.to_string(),
        }
    }

    /// Whether another held something for longer than it was waited for (`SQLSTATE` 55P03).
    pub fn is_lock_timeout(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        sqlstate(error).is_some_and(|code| code == "55P03")
    }

    /// Whether a row with the same unique key is there already.
    pub fn is_unique_violation(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        matches!(
            error.sql_err(),
            Some(sea_orm::SqlErr::UniqueConstraintViolation(_))
        )
    }
}

impl From<DbErr> for Error {
    fn from(error: DbErr) -> Self {
        if is_unavailable(&error) {
            Self::Unavailable(error)
        } else if is_lost_race(&error) {
            Self::LostRace(error)
        } else {
            Self::Database(error)
        }
    }
}

fn driver_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

fn sqlstate(error: &DbErr) -> Option<std::borrow::Cow<'_, str>> {
    driver_error(error)?.as_database_error()?.code()
}

pub(super) fn is_lost_race(error: &DbErr) -> bool {
    sqlstate(error).is_some_and(|code| matches!(code.as_ref(), "40001" | "40P01"))
}

fn is_unavailable(error: &DbErr) -> bool {
    if matches!(error, DbErr::ConnectionAcquire(_) | DbErr::Conn(_)) {
        return true;
    }
    match driver_error(error) {
        Some(
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed,
        ) => true,
        Some(sqlx::Error::Database(error)) => {
            error.code().is_some_and(|code| is_unavailable_code(&code))
        }
        _ => false,
    }
}

/// `PostgreSQL`: 25006 (read-only, as after a failover), class 08 (connection), 53 (out of
/// resources), 57P (operator intervention), 58 (system error).
/// `SQLite` (extended codes, the primary one in the low byte): 5 BUSY, 6 LOCKED, 8 READONLY,
/// 10 IOERR, 13 FULL, 14 CANTOPEN.
fn is_unavailable_code(code: &str) -> bool {
    match code.parse::<u32>() {
        Ok(sqlite) if code.len() < 5 => matches!(sqlite & 0xff, 5 | 6 | 8 | 10 | 13 | 14),
        _ => {
            code == "25006"
                || ["08", "53", "57P", "58"]
                    .iter()
                    .any(|class| code.starts_with(class))
        }
    }
}
