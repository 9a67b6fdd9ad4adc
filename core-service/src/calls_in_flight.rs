//! Counts the calls in flight, which a core drains at shutdown. Idle connections do not count.

use std::time::Duration;

use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// Calls count as drained after about this long without any: a client may send a call before it
/// receives the GOAWAY frame.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// The calls in flight. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsInFlight(TaskTracker);

impl CallsInFlight {
    /// Completes when two consecutive checks, half a [`QUIET_PERIOD`] apart, find no call.
    pub(crate) async fn drained(&self) {
        let mut was_idle = false;
        loop {
            tokio::time::sleep(QUIET_PERIOD / 2).await;
            let is_idle = self.0.is_empty();
            if is_idle && was_idle {
                return;
            }
            was_idle = is_idle;
        }
    }

    /// Counts a call until the token is dropped.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.0.token()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_are_drained_once_two_checks_in_a_row_find_none() {
        let calls = CallsInFlight::default();
        let started = Instant::now();
        calls.drained().await;
        assert_eq!(started.elapsed(), QUIET_PERIOD);

        // The second check finds a call.
        let started = Instant::now();
        let late = async {
            sleep(QUIET_PERIOD * 3 / 4).await;
            let _token = calls.token();
            sleep(QUIET_PERIOD / 2).await;
        };
        tokio::join!(calls.drained(), late);
        assert_eq!(started.elapsed(), QUIET_PERIOD * 2);
    }
}
