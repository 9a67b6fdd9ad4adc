//! Times that a device reports, corrected by this platform's clock.

use jiff::Timestamp;

/// When something occurred and when its report was sent, by the clock of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// None: at the arrival of the report.
    pub occurred: Option<Timestamp>,
    /// None: the device's clock is not corrected.
    pub sent: Option<Timestamp>,
}

/// When something occurred, by this platform's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub at: Timestamp,
    /// Whether the reported time was impossible, and `at` is the nearest possible one.
    pub is_clamped: bool,
}

impl DeviceTimes {
    /// When the reported change of a task occurred: not before the task was created, and not after `now`, at
    /// which the report arrives. The difference between `sent` and `now` corrects the device's clock.
    pub fn occurrence(self, created_at: Timestamp, now: Timestamp) -> Occurrence {
        let reported = self.occurred.unwrap_or(now);
        let sent = self.sent.filter(|_| self.occurred.is_some());
        let correction = now.duration_since(sent.unwrap_or(now));
        // Fails for units of a calendar only.
        let corrected = reported.saturating_add(correction).unwrap_or(reported);
        let at = corrected.max(created_at).min(now);
        Occurrence {
            at,
            is_clamped: at != corrected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Of a task that was created at 1000 s; the report arrives at 2000 s.
    #[test]
    fn a_reported_time_is_corrected_by_the_time_of_sending_and_clamped_to_the_life_of_the_task() {
        let [earliest, latest] = [Timestamp::MIN, Timestamp::MAX];
        for (occurred, sent, expected, is_clamped) in [
            (None, None, 2000, false),
            (None, Some(at(1)), 2000, false),
            (Some(at(1500)), None, 1500, false),
            (Some(at(1000)), None, 1000, false),
            (Some(at(2000)), None, 2000, false),
            (Some(at(999)), None, 1000, true),
            (Some(at(2001)), None, 2000, true),
            // Ten minutes ago, by a clock that is right, ahead, behind, and never set.
            (Some(at(1400)), Some(at(2000)), 1400, false),
            (Some(at(9000)), Some(at(9600)), 1400, false),
            (Some(at(1200)), Some(at(1800)), 1400, false),
            (Some(at(0)), Some(at(600)), 1400, false),
            // Before the creation, and after the report was sent.
            (Some(at(8000)), Some(at(9600)), 1000, true),
            (Some(at(9601)), Some(at(9600)), 2000, true),
            (Some(earliest), None, 1000, true),
            (Some(latest), None, 2000, true),
            (Some(earliest), Some(latest), 1000, true),
            (Some(latest), Some(earliest), 2000, true),
            (Some(latest), Some(latest), 2000, false),
        ] {
            let occurrence = DeviceTimes { occurred, sent }.occurrence(at(1000), at(2000));

            let expected = Occurrence {
                at: at(expected),
                is_clamped,
            };
            assert_eq!(occurrence, expected, "{occurred:?} {sent:?}");
        }
    }
}
