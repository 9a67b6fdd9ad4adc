//! Checks whether the database responds and accepts writes, and how its clock differs.

use jiff::SignedDuration;
use process::clock::Clock;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, sea_query::Query};

use super::{Error, lease_clock};

/// Queries on the connections of a storage. They fail after the storage is closed.
#[derive(Clone, Debug)]
pub struct HealthCheck(DatabaseConnection);

impl HealthCheck {
    pub(super) fn new(reader: DatabaseConnection) -> Self {
        Self(reader)
    }

    /// Fails if the database does not respond, or is a `PostgreSQL` that accepts no writes.
    pub async fn run(&self) -> Result<(), Error> {
        if self.0.get_database_backend() == DbBackend::Postgres {
            return Ok(migrations::check_writable(&self.0).await?);
        }
        self.0.execute_unprepared("SELECT 1").await?;
        Ok(())
    }

    /// How far this host's clock is ahead of `PostgreSQL`'s, with an error of at most half the
    /// query's duration; zero with `SQLite`, which has no clock of its own.
    pub async fn clock_difference(&self, clock: &Clock) -> Result<SignedDuration, Error> {
        if self.0.get_database_backend() != DbBackend::Postgres {
            return Ok(SignedDuration::ZERO);
        }
        let statement = Query::select().expr(lease_clock::now(&self.0)).take();
        let before = clock.now();
        let row = self.0.query_one(&statement).await?;
        let took = clock.now().duration_since(before);
        let theirs: i64 = match row {
            Some(row) => row.try_get_by_index(0)?,
            None => return Ok(SignedDuration::ZERO),
        };
        let ours = before.as_microsecond().saturating_add(half(took));
        Ok(SignedDuration::from_micros(ours.saturating_sub(theirs)))
    }
}

/// In microseconds.
fn half(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros() / 2).unwrap_or_default()
}
