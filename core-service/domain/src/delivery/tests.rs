//! Tests of routes and of time windows.

use super::*;
use crate::violation::Violation;

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
        is_end_requested: true,
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

fn slot(after: i64, before: i64) -> TaskTimes {
    TaskTimes {
        slot: Some(window(after, before)),
        is_end_requested: true,
        ..TaskTimes::default()
    }
}

fn with_after(times: TaskTimes, minutes: i64) -> TaskTimes {
    TaskTimes {
        after: Some(at(minutes)),
        ..times
    }
}

const NO_TIMES: TaskTimes = TaskTimes {
    slot: None,
    before: None,
    after: None,
    is_end_requested: false,
};

/// A time that cannot be parsed: its violation is already reported.
const UNREADABLE: TaskTimes = TaskTimes {
    is_end_requested: true,
    ..NO_TIMES
};

/// The windows of a pickup and a dropoff, and the fields with violations.
type Expected<'a> = (Option<(TimeWindow, TimeWindow)>, &'a [&'a str]);

#[track_caller]
fn assert_windows(
    pickup: TaskTimes,
    dropoff: TaskTimes,
    route: Option<Route>,
    (windows, fields): Expected<'_>,
) {
    let mut violations = Violations::new();

    let found = task_windows(&pickup, &dropoff, route, &TimeZone::UTC, &mut violations);

    let case = format!("{pickup:?}, {dropoff:?}, {route:?}");
    let found = found.map(|found| (found.pickup, found.dropoff));
    assert_eq!(found, windows, "{case}");
    let found = violations.iter().map(|violation| {
        assert_eq!(violation.reason, "OUT_OF_ORDER", "{case}");
        violation.field.as_str()
    });
    assert_eq!(found.collect::<Vec<_>>(), fields, "{case}");
}

#[test]
fn a_window_is_the_slot_or_else_the_quarter_of_an_hour_before_the_end() {
    let both = TaskTimes {
        before: Some(at(100)),
        ..slot(60, 120)
    };
    for (times, expected) in [
        (before(100), window(85, 100)),
        (slot(60, 120), window(60, 120)),
        (both, window(60, 120)),
    ] {
        // As the dropoff.
        let pickup = window(35, 50);
        assert_windows(before(50), times, None, (Some((pickup, expected)), &[]));
        // As the pickup, even if the route takes longer than the time between the two.
        let dropoff = window(185, 200);
        let windows = Some((expected, dropoff));
        assert_windows(times, before(200), Some(route(190)), (windows, &[]));
    }
}

#[test]
fn a_requested_start_replaces_the_start_of_a_slot_and_of_a_default_window() {
    for (times, expected) in [
        (with_after(before(100), 20), window(20, 100)),
        (with_after(before(100), 99), window(99, 100)),
        (with_after(slot(60, 100), 20), window(20, 100)),
        (with_after(slot(60, 100), 80), window(80, 100)),
    ] {
        let pickup = window(-15, 0);
        assert_windows(before(0), times, None, (Some((pickup, expected)), &[]));
        let dropoff = window(185, 200);
        assert_windows(times, before(200), None, (Some((expected, dropoff)), &[]));
    }
}

#[test]
fn a_start_must_be_before_the_end() {
    for start in [100, 101] {
        for times in [before(100), slot(60, 100)] {
            let times = with_after(times, start);
            assert_windows(times, before(200), None, (None, &["pickup.after"]));
            assert_windows(before(50), times, None, (None, &["dropoff.after"]));
            assert_windows(
                times,
                times,
                None,
                (None, &["dropoff.after", "pickup.after"]),
            );
        }
    }
}

#[test]
fn a_pickup_without_times_ends_one_route_duration_before_the_end_of_the_dropoff() {
    for (pickup, dropoff, minutes, windows) in [
        (NO_TIMES, before(100), 10, (window(75, 90), window(85, 100))),
        (
            NO_TIMES,
            slot(60, 120),
            10,
            (window(95, 110), window(60, 120)),
        ),
        (NO_TIMES, before(100), 0, (window(85, 100), window(85, 100))),
        (
            NO_TIMES,
            with_after(before(100), 20),
            30,
            (window(55, 70), window(20, 100)),
        ),
        (
            with_after(NO_TIMES, 20),
            before(100),
            10,
            (window(20, 90), window(85, 100)),
        ),
    ] {
        let route = Some(route(minutes));
        assert_windows(pickup, dropoff, route, (Some(windows), &[]));
    }
    let starts_too_late = with_after(NO_TIMES, 90);
    let expected = (None, &["pickup.after"][..]);
    assert_windows(starts_too_late, before(100), Some(route(10)), expected);
}

#[test]
fn a_pickup_must_not_end_after_the_dropoff() {
    let both = |pickup| Some((pickup, window(85, 100)));
    for (pickup, windows, fields) in [
        (before(100), both(window(85, 100)), &[][..]),
        (before(101), both(window(86, 101)), &["pickup.before"]),
        (slot(90, 100), both(window(90, 100)), &[]),
        (slot(90, 101), both(window(90, 101)), &["pickup.time_slot"]),
        // Its start alone does not matter.
        (with_after(before(100), 99), both(window(99, 100)), &[]),
    ] {
        assert_windows(pickup, before(100), Some(route(10)), (windows, fields));
    }
}

#[test]
fn without_an_end_or_a_route_windows_are_unknown_without_a_further_violation() {
    let route = Some(route(10));
    for (pickup, dropoff, route) in [
        (before(50), NO_TIMES, route),
        (before(50), UNREADABLE, route),
        (NO_TIMES, NO_TIMES, route),
        (UNREADABLE, before(100), route),
        (with_after(UNREADABLE, 200), before(100), route),
        (NO_TIMES, before(100), None),
    ] {
        assert_windows(pickup, dropoff, route, (None, &[]));
    }
}

#[test]
fn windows_before_the_first_instant_are_unknown() {
    let first = TaskTimes {
        before: Some(Timestamp::MIN),
        is_end_requested: true,
        ..NO_TIMES
    };
    assert_windows(first, before(100), None, (None, &[]));
    assert_windows(NO_TIMES, first, Some(route(10)), (None, &[]));
    let second = TaskTimes {
        before: Some(Timestamp::MIN + DEFAULT_LENGTH),
        ..first
    };
    assert_windows(NO_TIMES, second, Some(route(16)), (None, &[]));
}

#[test]
fn requested_times_before_now_cause_a_warning() {
    let now = at(60).to_zoned(TimeZone::UTC);
    for (times, expected) in [
        (before(60), None),
        (
            before(59),
            Some((
                "t.before",
                "is in the past: it ended at 1970-01-01T00:59:00+00:00",
            )),
        ),
        // The default start is past, but the request does not ask for it.
        (before(61), None),
        (
            with_after(before(61), 59),
            Some((
                "t.after",
                "is partly in the past: it began at 1970-01-01T00:59:00+00:00",
            )),
        ),
        (with_after(before(61), 60), None),
        (
            with_after(before(59), 50),
            Some((
                "t.before",
                "is in the past: it ended at 1970-01-01T00:59:00+00:00",
            )),
        ),
        (
            with_after(NO_TIMES, 30),
            Some((
                "t.after",
                "is partly in the past: it began at 1970-01-01T00:30:00+00:00",
            )),
        ),
        (slot(60, 120), None),
        (
            slot(0, 59),
            Some((
                "t.time_slot",
                "is in the past: it ended at 1970-01-01T00:59:00+00:00",
            )),
        ),
        (
            slot(30, 90),
            Some((
                "t.time_slot",
                "is partly in the past: it began at 1970-01-01T00:30:00+00:00",
            )),
        ),
        (with_after(slot(30, 90), 70), None),
        (NO_TIMES, None),
    ] {
        let mut violations = Violations::new();

        warn_of_past_times("t", &times, &now, &mut violations);

        assert!(violations.is_empty());
        let warnings = violations.into_warnings();
        let found = warnings.iter().map(|warning| {
            assert_eq!(warning.reason, "PAST_TIME");
            (warning.field.as_str(), warning.description.as_str())
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            Vec::from_iter(expected),
            "{times:?}"
        );
    }
}

#[test]
fn the_violations_say_what_is_wrong() {
    let mut violations = Violations::new();
    let zone = TimeZone::get("Europe/Paris").unwrap();
    let starts_too_late = with_after(before(100), 100);
    task_windows(&before(50), &starts_too_late, None, &zone, &mut violations);
    task_windows(&before(101), &before(100), None, &zone, &mut violations);

    let violation = |field: &str, description: &str| Violation {
        field: field.to_owned(),
        description: description.to_owned(),
        reason: "OUT_OF_ORDER".into(),
    };
    let found: Vec<_> = violations.iter().cloned().collect();
    assert_eq!(
        found,
        [
            violation(
                "dropoff.after",
                "must be earlier than the task's end, 1970-01-01T02:40:00+01:00"
            ),
            violation(
                "pickup.before",
                "must not be later than the dropoff's end, 1970-01-01T02:40:00+01:00"
            ),
        ]
    );
}

#[test]
fn a_route_is_rounded_and_saturates() {
    for (quantity, expected) in [(0.4, 0), (0.5, 1), (1e30, u32::MAX), (-1.0, 0)] {
        let route = Route::rounded(quantity, 7.0, DistanceSource::Osrm);
        assert_eq!(
            (route.distance_meters, route.duration_seconds),
            (expected, 7)
        );
        let route = Route::rounded(7.0, quantity, DistanceSource::Osrm);
        assert_eq!(
            (route.distance_meters, route.duration_seconds),
            (7, expected)
        );
    }
}
