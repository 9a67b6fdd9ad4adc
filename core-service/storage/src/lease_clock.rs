//! The clock by which leases are taken and end. What is due goes by the host's, which may jump;
//! a lease that ended early would be taken while its first holder is still at it.
//!
//! Over `PostgreSQL` it is the database's, one for all cores. Over `SQLite` that would be the
//! host's again; but there is one process, and its own clock can't jump.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ConnectionTrait, DbBackend,
    sea_query::{Expr, SimpleExpr},
};

use super::entity::instant::Instant as Stored;
use process::clock::Clock;

/// When a lease ends that begins now, in microseconds since 1970, as SQL.
pub(super) fn end_of(connection: &impl ConnectionTrait, lease: Duration) -> SimpleExpr {
    if connection.get_database_backend() == DbBackend::Sqlite {
        // Bound: a number in the text would make each statement one that was never planned.
        return Expr::value(Stored::from(PROCESS.after(lease, Instant::now())));
    }
    let microseconds = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
    Expr::cust(format!(
        "CAST(extract(epoch from clock_timestamp()) * 1000000 AS BIGINT) + {microseconds}"
    ))
}

/// Now, as SQL: microseconds since 1970.
pub(super) fn now(connection: &impl ConnectionTrait) -> SimpleExpr {
    end_of(connection, Duration::ZERO)
}

/// By how much the host's clock is ahead of the process's from the beginning: in tests, as if it
/// had jumped.
const AHEAD: SignedDuration = if cfg!(test) {
    SignedDuration::from_hours(1)
} else {
    SignedDuration::ZERO
};

static PROCESS: LazyLock<Steady> = LazyLock::new(|| Steady {
    began: Clock::system().now().checked_sub(AHEAD).unwrap_or_default(),
    at: Instant::now(),
});

/// A clock that is set once, and then goes on by itself.
#[derive(Clone, Copy, Debug)]
struct Steady {
    began: Timestamp,
    at: Instant,
}

impl Steady {
    /// What it shows so long after a moment.
    fn after(self, wait: Duration, moment: Instant) -> Timestamp {
        let since = moment.saturating_duration_since(self.at);
        SignedDuration::try_from(since.saturating_add(wait))
            .ok()
            .and_then(|since| self.began.checked_add(since).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_from_when_it_was_set_and_never_back_or_round() {
        let minute = Duration::from_mins(1);
        let before = Instant::now();
        let at = before + minute;
        let clock = Steady {
            began: Timestamp::UNIX_EPOCH,
            at,
        };
        let shows = |wait, moment| clock.after(wait, moment).as_second();

        assert_eq!(shows(Duration::ZERO, at), 0);
        assert_eq!(shows(minute, at + minute), 120);
        assert_eq!(shows(minute, before), 60);
        assert_eq!(clock.after(Duration::MAX, at), Timestamp::MAX);
    }
}
