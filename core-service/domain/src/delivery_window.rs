//! Time windows of a delivery's two tasks: the requested times, and defaults for missing ones.

use jiff::{SignedDuration, Timestamp};

use crate::{delivery::Route, task::TimeWindow, violation::Violations};

/// Length of a window whose start is not requested.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_mins(15);

/// The requested times of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTimes {
    pub slot: Option<TimeWindow>,
    pub before: Option<Timestamp>,
    pub after: Option<Timestamp>,
    /// Whether the request has a slot or an end, valid or not.
    pub given: bool,
}

/// The windows of the pickup and the dropoff; `None` if one is unknown or invalid. A pickup
/// without requested times ends one route duration before the dropoff's window ends.
pub fn task_windows(
    pickup: &TaskTimes,
    dropoff: &TaskTimes,
    route: Option<Route>,
    violations: &mut Violations,
) -> Option<(TimeWindow, TimeWindow)> {
    let dropoff_window = task_window("dropoff", dropoff, dropoff.before, violations);
    let arrival = dropoff_window.map(|window| window.before);
    let departure = arrival.zip(route).and_then(|(arrival, route)| {
        earlier(
            arrival,
            SignedDuration::from_secs(route.duration_seconds.into()),
        )
    });
    let end = if pickup.given {
        pickup.before
    } else {
        departure
    };
    let pickup_window = task_window("pickup", pickup, end, violations);
    if pickup.given
        && let (Some(first), Some(second)) = (pickup_window, dropoff_window)
        && first.before > second.before
    {
        let field = match pickup.slot {
            Some(_) => "pickup.time_slot",
            None => "pickup.before",
        };
        violations.add(
            field,
            "OUT_OF_ORDER",
            "must not be later than the dropoff's",
        );
    }
    pickup_window.zip(dropoff_window)
}

/// The slot, or the window from `after` (by default 15 minutes before the end) to the end.
fn task_window(
    task: &str,
    times: &TaskTimes,
    end: Option<Timestamp>,
    violations: &mut Violations,
) -> Option<TimeWindow> {
    let (start, end) = match times.slot {
        Some(slot) => (slot.after, slot.before),
        None => (earlier(end?, DEFAULT_LENGTH)?, end?),
    };
    let after = times.after.unwrap_or(start);
    if after >= end {
        violations.add(
            format!("{task}.after"),
            "OUT_OF_ORDER",
            "must be earlier than the task's end",
        );
        return None;
    }
    Some(TimeWindow { after, before: end })
}

fn earlier(instant: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    instant.checked_sub(by).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DistanceSource;

    const MINUTE: i64 = 60;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * MINUTE).unwrap()
    }

    fn window(after: i64, before: i64) -> TimeWindow {
        TimeWindow {
            after: at(after),
            before: at(before),
        }
    }

    fn before(minutes: i64) -> TaskTimes {
        TaskTimes {
            before: Some(at(minutes)),
            given: true,
            ..TaskTimes::default()
        }
    }

    fn route(minutes: u32) -> Route {
        Route {
            distance_meters: 1,
            duration_seconds: minutes * 60,
            source: DistanceSource::StraightLine,
        }
    }

    #[test]
    fn a_pickup_without_times_ends_one_route_duration_before_the_dropoff() {
        let mut violations = Violations::new();

        let windows = task_windows(
            &TaskTimes::default(),
            &before(100),
            Some(route(10)),
            &mut violations,
        );

        assert_eq!(windows, Some((window(75, 90), window(85, 100))));
        assert!(violations.is_empty());
    }

    #[test]
    fn a_slot_and_a_given_start_replace_the_default_start() {
        let mut violations = Violations::new();
        let pickup = TaskTimes {
            after: Some(at(20)),
            ..before(50)
        };
        let dropoff = TaskTimes {
            slot: Some(window(60, 120)),
            given: true,
            ..TaskTimes::default()
        };

        let windows = task_windows(&pickup, &dropoff, None, &mut violations);

        assert_eq!(windows, Some((window(20, 50), window(60, 120))));
        assert!(violations.is_empty());
    }

    #[test]
    fn a_window_must_start_before_its_end_and_the_pickup_must_not_end_after_the_dropoff() {
        for (pickup, dropoff, field) in [
            (before(101), before(100), "pickup.before"),
            (
                TaskTimes {
                    slot: Some(window(60, 120)),
                    given: true,
                    ..TaskTimes::default()
                },
                before(100),
                "pickup.time_slot",
            ),
            (
                before(50),
                TaskTimes {
                    after: Some(at(100)),
                    ..before(100)
                },
                "dropoff.after",
            ),
        ] {
            let mut violations = Violations::new();

            let _ = task_windows(&pickup, &dropoff, Some(route(1)), &mut violations);

            let fields: Vec<_> = violations
                .iter()
                .map(|violation| &violation.field)
                .collect();
            assert_eq!(fields, [field]);
        }
    }
}
