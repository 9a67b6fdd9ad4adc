//! The clock of leases. It is not the host's clock, which may jump: a lease that expires early
//! would be claimed again while its owner still works.
//!
//! With `PostgreSQL` it is the database's clock, common to all cores. With `SQLite` there is only
//! one process, and its monotonic clock does not jump.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use process::clock::Clock;
use sea_orm::{
    ConnectionTrait, DbBackend, Value,
    sea_query::{Expr, SimpleExpr},
};

use super::entity::Instant as StoredInstant;

/// The expiry of a lease that begins now, as SQL: microseconds since 1970.
pub(super) fn expiry(connection: &impl ConnectionTrait, lease: Duration) -> SimpleExpr {
    if connection.get_database_backend() == DbBackend::Sqlite {
        // A parameter: a number in the text would make every statement distinct in the cache.
        return Expr::value(StoredInstant::from(
            PROCESS_CLOCK.after(lease, Instant::now()),
        ));
    }
    let microseconds = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    Expr::cust(format!("{NOW_ON_POSTGRES} + {microseconds}"))
}

/// Like [`expiry`], as text of a statement, which refers to a parameter, and the value of that.
pub(super) fn expiry_sql(
    connection: &impl ConnectionTrait,
    lease: Duration,
    parameter: &str,
) -> (String, Value) {
    if connection.get_database_backend() == DbBackend::Sqlite {
        let expiry = StoredInstant::from(PROCESS_CLOCK.after(lease, Instant::now()));
        return (parameter.to_owned(), expiry.into());
    }
    let microseconds = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    let expiry = format!("{NOW_ON_POSTGRES} + {parameter}");
    (expiry, microseconds.into())
}

/// Now, by the clock of `PostgreSQL`.
pub(super) const NOW_ON_POSTGRES: &str =
    "CAST(extract(epoch from clock_timestamp()) * 1000000 AS BIGINT)";

/// Now, as SQL: microseconds since 1970.
pub(super) fn now(connection: &impl ConnectionTrait) -> SimpleExpr {
    expiry(connection, Duration::ZERO)
}

/// How far the host's clock is ahead of this one. Not zero in tests, as if it had jumped.
const HOST_CLOCK_OFFSET: SignedDuration = if cfg!(test) {
    SignedDuration::from_hours(1)
} else {
    SignedDuration::ZERO
};

/// A clock that is set once and then advances monotonically.
struct MonotonicClock {
    set_to: Timestamp,
    set_at: Instant,
}

static PROCESS_CLOCK: LazyLock<MonotonicClock> = LazyLock::new(|| {
    let set_to = Clock::system().now().checked_sub(HOST_CLOCK_OFFSET);
    MonotonicClock {
        set_to: set_to.unwrap_or_default(),
        set_at: Instant::now(),
    }
});

impl MonotonicClock {
    /// The time at `moment`, plus `wait`.
    fn after(&self, wait: Duration, moment: Instant) -> Timestamp {
        let since = moment.saturating_duration_since(self.set_at);
        let later = self.set_to.saturating_add(since.saturating_add(wait));
        later.unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::sea_query::Query;

    use super::*;
    use crate::{Connections, fixture};

    async fn microseconds(reader: &Connections, expression: SimpleExpr) -> i64 {
        let row = reader.query_one(Query::select().expr(expression)).await;
        row.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    /// The process's clock is an hour behind in this test.
    #[tokio::test]
    async fn a_lease_on_postgresql_expires_by_the_clock_of_the_database() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        let reader = storage.reader();
        let database_now = || {
            let now = "CAST(extract(epoch from clock_timestamp()) * 1000000 AS BIGINT)";
            microseconds(reader, Expr::cust(now))
        };

        let before = database_now().await;
        let now = microseconds(reader, now(reader)).await;
        let expiry = microseconds(reader, expiry(reader, Duration::from_mins(1))).await;
        let after = database_now().await;

        let minute = 60_000_000;
        let begun = expiry - minute;
        let instants = [before, now, begun, after];
        assert!(instants.is_sorted(), "{instants:?}");
    }

    #[test]
    fn the_monotonic_clock_advances_from_its_start_without_overflow() {
        let minute = Duration::from_mins(1);
        let before = Instant::now();
        let set_at = before + minute;
        let clock = MonotonicClock {
            set_to: Timestamp::UNIX_EPOCH,
            set_at,
        };
        let seconds = |wait, moment| clock.after(wait, moment).as_second();

        assert_eq!(seconds(Duration::ZERO, set_at), 0);
        assert_eq!(seconds(minute, set_at + minute), 120);
        assert_eq!(seconds(minute, before), 60);
        assert_eq!(clock.after(Duration::MAX, set_at), Timestamp::MAX);
    }
}
