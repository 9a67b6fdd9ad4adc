//! Checks whether the database responds and accepts writes, and how its clock differs.

use std::fmt::Display;

use jiff::SignedDuration;
use process::clock::Clock;
use sea_orm::{ConnectionTrait, DbBackend};

use super::{Error, connections::Connections, group_commit::WriteCheck, lease_clock, rows};

/// Queries on the connections of a storage. They fail after the storage is closed.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    reader: Connections,
    /// With `SQLite`, whose writes have a connection of their own.
    writes: Option<WriteCheck>,
}

impl HealthCheck {
    pub(super) fn new(reader: Connections, writes: Option<WriteCheck>) -> Self {
        Self { reader, writes }
    }

    /// Fails if the database does not respond or accepts no writes. With `SQLite`, the check writes
    /// only after a caller's write has failed: it finds no fault before that write.
    pub async fn run(&self) -> Result<(), Error> {
        if let Some(writes) = &self.writes {
            self.reader.execute_unprepared("SELECT 1").await?;
            return writes
                .run()
                .await
                .map_err(|error| accepts_no_writes(&error));
        }
        Ok(migrations::check_writable(&self.reader).await?)
    }

    /// How far this host's clock is ahead of `PostgreSQL`'s, with an error of at most half the
    /// query's duration; zero with `SQLite`, which has no clock of its own.
    pub async fn clock_difference(&self, clock: &Clock) -> Result<SignedDuration, Error> {
        if self.reader.get_database_backend() != DbBackend::Postgres {
            return Ok(SignedDuration::ZERO);
        }
        let select = format!("SELECT {}", lease_clock::NOW_ON_POSTGRES);
        let before = clock.now();
        let theirs: i64 = rows::value(&self.reader, &select).await?;
        let took = clock.now().duration_since(before);
        let half = i64::try_from(took.as_micros() / 2).unwrap_or_default();
        let ours = before.as_microsecond().saturating_add(half);
        Ok(SignedDuration::from_micros(ours.saturating_sub(theirs)))
    }
}

fn accepts_no_writes(error: &Error) -> Error {
    let cause: &dyn Display = match error {
        Error::Unavailable(cause) => cause,
        error => error,
    };
    Error::Misconfigured(format!("the database accepts no writes: {cause}"))
}
