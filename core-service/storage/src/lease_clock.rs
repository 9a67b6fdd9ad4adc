//! The clock of leases. Due times follow the host's clock, which may jump; but a lease that
//! expires early would be claimed while its owner still works under it.
//!
//! Over `PostgreSQL` it is the database's clock, common to all cores. Over `SQLite` that would be
//! the host's clock again; but there is only one process, and its monotonic clock does not jump.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use process::clock::Clock;
use sea_orm::{
    ConnectionTrait, DbBackend,
    sea_query::{Expr, SimpleExpr},
};

use super::entity::instant::Instant as Stored;

/// The expiry of a lease that begins now, as SQL: microseconds since 1970.
pub(super) fn expiry(connection: &impl ConnectionTrait, lease: Duration) -> SimpleExpr {
    if connection.get_database_backend() == DbBackend::Sqlite {
        // A parameter: a number in the text would make every statement a new one.
        return Expr::value(Stored::from(PROCESS.after(lease, Instant::now())));
    }
    let microseconds = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    Expr::cust(format!(
        "CAST(extract(epoch from clock_timestamp()) * 1000000 AS BIGINT) + {microseconds}"
    ))
}

/// Now, as SQL: microseconds since 1970.
pub(super) fn now(connection: &impl ConnectionTrait) -> SimpleExpr {
    expiry(connection, Duration::ZERO)
}

/// In tests, the host's clock is ahead of this one from the start, as if it had jumped.
const AHEAD: SignedDuration = if cfg!(test) {
    SignedDuration::from_hours(1)
} else {
    SignedDuration::ZERO
};

static PROCESS: LazyLock<MonotonicClock> = LazyLock::new(|| MonotonicClock {
    set_to: Clock::system().now().checked_sub(AHEAD).unwrap_or_default(),
    set_at: Instant::now(),
});

/// A clock that is set once, and then advances monotonically.
#[derive(Clone, Copy, Debug)]
struct MonotonicClock {
    set_to: Timestamp,
    set_at: Instant,
}

impl MonotonicClock {
    /// Its time at `moment`, plus `wait`.
    fn after(self, wait: Duration, moment: Instant) -> Timestamp {
        let since = moment.saturating_duration_since(self.set_at);
        SignedDuration::try_from(since.saturating_add(wait))
            .ok()
            .and_then(|since| self.set_to.checked_add(since).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_advances_from_its_start_and_neither_goes_back_nor_overflows() {
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
