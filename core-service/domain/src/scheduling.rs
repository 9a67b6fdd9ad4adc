//! Scheduling: how the capacity of a dispatcher is shared between webhooks, so that a slow or
//! unreachable receiver delays only its own notifications.

use std::time::Duration;

use super::notification::{Failure, Outcome};

/// How long the last attempt to a webhook's receiver took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverHealth {
    /// No attempt has ended yet.
    Unknown,
    /// The last attempt was short, delivered or failed.
    Healthy,
    /// The last attempt was long, delivered or failed.
    Slow,
}

impl ReceiverHealth {
    /// The health after an attempt of this duration.
    ///
    /// Only the time in flight counts: a response just before the timeout, or a status whose body
    /// never arrives, uses as much capacity as no response.
    pub fn after(outcome: &Outcome, duration: Duration) -> Self {
        // The timeout of a dispatcher may be shorter than the threshold.
        let timed_out = outcome.failure() == Some(Failure::Timeout);
        if timed_out || duration >= SLOW_THRESHOLD {
            Self::Slow
        } else {
            Self::Healthy
        }
    }
}

/// The duration from which an attempt is long: a third of the default timeout. A receiver that
/// starts up, or works before it answers, stays healthy. Eight such receivers may use the whole
/// default capacity (8 × 32 = 256): even then, an attempt ends every 20 ms.
const SLOW_THRESHOLD: Duration = Duration::from_secs(5);

/// How long a dispatcher leases a notification: longer than the longest attempt with its queueing
/// and its outcome report.
pub const LEASE_DURATION: Duration = Duration::from_mins(1);

/// How long after its claim a notification may be in flight; longer than any attempt. A
/// notification that was claimed earlier no longer counts towards the in-flight limit of a healthy
/// webhook, although its lease has not expired: its dispatcher has died.
pub const IN_FLIGHT_WINDOW: Duration = Duration::from_secs(20);

const _: () = assert!(
    SLOW_THRESHOLD.as_secs() < IN_FLIGHT_WINDOW.as_secs()
        && IN_FLIGHT_WINDOW.as_secs() < LEASE_DURATION.as_secs()
);

/// The most notifications in flight to one healthy webhook. Claims count those of all dispatchers,
/// pre-leasing counts those of one stream.
const MAX_IN_FLIGHT_PER_WEBHOOK: u32 = 32;

/// How many notifications one dispatcher may have in flight.
#[derive(Clone, Copy, Debug)]
pub struct Capacity(pub u32);

impl Capacity {
    /// The in-flight limit of one webhook: one until it is healthy, then an eighth of the
    /// capacity, up to a limit, so that receivers that fail at the same moment don't use all of
    /// it.
    pub fn per_webhook(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => (self.0 / 8).clamp(1, MAX_IN_FLIGHT_PER_WEBHOOK),
            ReceiverHealth::Unknown | ReceiverHealth::Slow => 1,
        }
    }

    /// The in-flight limit of all webhooks of one health. A quarter of the capacity is reserved
    /// for healthy webhooks, and unknown ones do not queue behind slow ones.
    pub fn per_health(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => self.0,
            ReceiverHealth::Unknown => (self.0 / 2).max(1),
            ReceiverHealth::Slow => (self.0 / 4).max(1),
        }
    }
}

/// The free capacity for one claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimBudget {
    /// The dispatcher's whole capacity.
    pub capacity: Capacity,
    /// The free part of the capacity.
    pub free: u32,
    /// The part of `free` that webhooks of unknown health may use.
    pub free_for_unknown: u32,
    /// The part of `free` that slow webhooks may use.
    pub free_for_slow: u32,
}

impl ClaimBudget {
    /// How many notifications of each webhook to claim, in the order given. A webhook is given as
    /// its health and its number of notifications in flight. Every webhook gets an equal share
    /// first; what remains goes to the webhooks that can use more, in order.
    pub fn share(self, webhooks: &[(ReceiverHealth, u32)]) -> Vec<u32> {
        let count = u32::try_from(webhooks.len()).unwrap_or(u32::MAX).max(1);
        let (mut unknown, mut slow) = (self.free_for_unknown, self.free_for_slow);
        let wanted: Vec<u32> = webhooks
            .iter()
            .map(|&(health, in_flight)| {
                let remaining = self.capacity.per_webhook(health).saturating_sub(in_flight);
                let health_budget = match health {
                    ReceiverHealth::Healthy => return remaining,
                    ReceiverHealth::Unknown => &mut unknown,
                    ReceiverHealth::Slow => &mut slow,
                };
                let granted = remaining.min(*health_budget);
                *health_budget -= granted;
                granted
            })
            .collect();

        let mut free = self.free;
        let mut shares = vec![0; wanted.len()];
        for limit in [(self.free / count).max(1), u32::MAX] {
            for (share, wanted) in shares.iter_mut().zip(&wanted) {
                let more = (wanted - *share).min(limit).min(free);
                *share += more;
                free -= more;
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::{ReceiverHealth::*, *};

    #[test]
    fn a_long_attempt_is_slow_whatever_its_outcome() {
        let failed = |failure, status| Outcome::Failed {
            failure,
            status,
            retry_after: None,
        };
        let error_status = failed(Failure::Status, Some(500));
        let reset = failed(Failure::Protocol, None);
        for outcome in [Outcome::Delivered, error_status, reset] {
            for (millis, expected) in [(0, Healthy), (4_999, Healthy), (5_000, Slow)] {
                let health = ReceiverHealth::after(&outcome, Duration::from_millis(millis));
                assert_eq!(health, expected, "{outcome:?} after {millis} ms");
            }
        }
        let timeout = failed(Failure::Timeout, None);
        assert_eq!(
            ReceiverHealth::after(&timeout, Duration::from_secs(1)),
            Slow
        );
    }

    fn budget(free: u32) -> ClaimBudget {
        ClaimBudget {
            capacity: Capacity(256),
            free,
            free_for_unknown: 3,
            free_for_slow: 2,
        }
    }

    #[test]
    fn a_healthy_webhook_has_an_eighth_of_the_capacity_and_any_other_has_one() {
        for (capacity, healthy) in [(1, 1), (8, 1), (64, 8), (256, 32), (100_000, 32)] {
            assert_eq!(Capacity(capacity).per_webhook(Healthy), healthy);
            assert_eq!(Capacity(capacity).per_webhook(Unknown), 1);
            assert_eq!(Capacity(capacity).per_webhook(Slow), 1);
        }
    }

    #[test]
    fn webhooks_of_unknown_health_have_half_of_the_capacity_and_slow_ones_a_quarter() {
        for (capacity, unknown, slow) in [(1, 1, 1), (4, 2, 1), (9, 4, 2), (256, 128, 64)] {
            let limits =
                [Healthy, Unknown, Slow].map(|health| Capacity(capacity).per_health(health));
            assert_eq!(limits, [capacity, unknown, slow]);
        }
    }

    #[test]
    fn unknown_and_slow_webhooks_never_use_the_whole_capacity() {
        for capacity in 4..1000 {
            let not_healthy =
                Capacity(capacity).per_health(Unknown) + Capacity(capacity).per_health(Slow);
            assert!(not_healthy * 4 <= capacity * 3, "{capacity}");
            assert!(
                Capacity(capacity).per_health(Slow) * 4 <= capacity,
                "{capacity}"
            );
        }
    }

    #[test]
    fn free_capacity_is_shared_within_each_limit() {
        let share = |free, webhooks: &[_]| budget(free).share(webhooks);

        assert_eq!(share(0, &[(Healthy, 0)]), [0]);
        assert_eq!(share(100, &[(Healthy, 30)]), [2]);
        assert_eq!(share(100, &[(Healthy, 40)]), [0]);
        assert_eq!(share(10, &[(Healthy, 0), (Healthy, 0)]), [5, 5]);
        assert_eq!(share(10, &[(Healthy, 30), (Healthy, 0)]), [2, 8]);
        assert_eq!(share(2, &[(Healthy, 0); 3]), [1, 1, 0]);
        assert_eq!(share(100, &[(Unknown, 0); 5]), [1, 1, 1, 0, 0]);
        assert_eq!(share(100, &[(Unknown, 1), (Slow, 1)]), [0, 0]);
        assert_eq!(
            share(100, &[(Slow, 0), (Slow, 0), (Slow, 0), (Healthy, 0)]),
            [1, 1, 0, 32],
        );
        assert!(share(100, &[]).is_empty());
    }
}
