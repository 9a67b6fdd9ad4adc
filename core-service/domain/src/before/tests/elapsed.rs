//! Durations from now are elapsed time, and never end before now.

use jiff::{Timestamp, ToSpan as _, Zoned, tz::TimeZone};
use proptest::{prelude::*, sample::select};

use crate::before::{DateOrder, parse};

const ZONES: [&str; 6] = [
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/St_Johns",
    "UTC",
];

prop_compose! {
    /// Any second of thirty years, half of the time within two days of a clock change.
    fn any_now()(
        second in 946_684_800_i64..1_900_000_000,
        zone in select(&ZONES[..]),
        near in proptest::option::of(-2 * 86_400_i64..86_400),
    ) -> Zoned {
        let zone = TimeZone::get(zone).unwrap();
        let instant = Timestamp::from_second(second).unwrap();
        let change = near.and_then(|seconds| {
            let change = zone.following(instant).next()?.timestamp();
            change.checked_add(seconds.seconds()).ok()
        });
        change.unwrap_or(instant).to_zoned(zone)
    }
}

/// Texts with `#` for a number, and the seconds of their unit.
const ELAPSED: [(&str, i64); 18] = [
    ("+#h", 3600),
    ("+# hours", 3600),
    ("+#hr", 3600),
    ("in # hours", 3600),
    ("in #h", 3600),
    ("# hours from now", 3600),
    ("dans # heures", 3600),
    ("in # Stunden", 3600),
    ("dentro de # horas", 3600),
    ("tra # ore", 3600),
    ("+#m", 60),
    ("+# min", 60),
    ("# minutes", 60),
    ("in # min", 60),
    ("d'ici # minutes", 60),
    ("+#s", 1),
    ("+# seconds", 1),
    ("now +#m", 60),
];

const CALENDAR: [&str; 14] = [
    "+#d",
    "+# days",
    "+#w",
    "+# weeks",
    "+#j",
    "in # days",
    "in #d",
    "dans # jours",
    "in # Tagen",
    "en # días",
    "tra # giorni",
    "+# months",
    "in # months",
    "+#d2h",
];

/// Parts of texts that name neither a day nor a time of day: durations from now, prepositions,
/// zones, punctuation.
const POSITIVE: [&str; 34] = [
    "+2h",
    "+30m",
    "+1d",
    "+1w",
    "+1h30",
    "1 hour",
    "2 Stunden",
    "in 2h",
    "dans 30 min",
    "1.5 hours",
    "+1.5 hours",
    "in 1.5 hours",
    "half an hour",
    "+2 hours",
    "+2 heures",
    "tra 2 ore",
    "before",
    "avant",
    "bis",
    "prima di",
    "antes de",
    "by",
    "at",
    "UTC",
    "+02:00",
    "+2",
    ".",
    ",",
    "Europe/Paris",
    "Z",
    "the",
    "and",
    "hours",
    "now",
];

/// Durations of clock units from now, and days.
const FROM_NOW: [&str; 6] = [
    "in 2h",
    "dans 2 heures",
    "in 2 Stunden",
    "tra 2 ore",
    "dentro de 30 min",
    "2 hours from now",
];
const DAYS: [&str; 6] = ["today", "demain", "heute", "hoy", "monday", "domani"];

proptest! {
    #[test]
    fn hours_minutes_and_seconds_from_now_elapse(
        now in any_now(), (form, unit) in select(&ELAPSED[..]), count in 1..200_i64,
    ) {
        let text = form.replace('#', &count.to_string());
        let parsed = parse(&text, &now, DateOrder::DayFirst);
        let expected = now.timestamp().checked_add((count * unit).seconds()).unwrap();
        prop_assert_eq!(parsed, Ok(expected), "{} at {}", text, now);
    }

    #[test]
    fn days_from_now_are_never_before_now(
        now in any_now(), form in select(&CALENDAR[..]), count in 1..200_i64,
    ) {
        let text = form.replace('#', &count.to_string());
        let parsed = parse(&text, &now, DateOrder::DayFirst);
        prop_assert!(parsed.as_ref().is_ok_and(|time| *time > now.timestamp()), "{text} at {now}: {parsed:?}");
    }

    #[test]
    fn no_text_of_positive_durations_is_before_now(
        now in any_now(), parts in proptest::collection::vec(select(&POSITIVE[..]), 1..6),
    ) {
        let text = parts.join(" ");
        if let Ok(parsed) = parse(&text, &now, DateOrder::DayFirst) {
            prop_assert!(parsed >= now.timestamp(), "{text:?} at {now}: {parsed}");
        }
    }

    #[test]
    fn no_text_of_a_day_and_a_duration_from_now_is_before_now(
        now in any_now(),
        parts in proptest::collection::vec(select(&POSITIVE[..]), 0..4),
        (duration, day) in (select(&FROM_NOW[..]), select(&DAYS[..])),
        (at, day_at) in (0..4_usize, 0..5_usize),
    ) {
        let mut parts = parts;
        parts.insert(at.min(parts.len()), duration);
        parts.insert(day_at.min(parts.len()), day);
        let text = parts.join(" ");
        if let Ok(parsed) = parse(&text, &now, DateOrder::DayFirst) {
            prop_assert!(parsed >= now.timestamp(), "{text:?} at {now}: {parsed}");
        }
    }
}

#[test]
fn a_duration_from_now_elapses_across_a_repeated_hour() {
    for (now, expected) in [
        // The first and the second 01:30 of the day.
        (
            "2026-11-01T01:30:00-04:00[America/New_York]",
            "2026-11-01T05:40:00Z",
        ),
        (
            "2026-11-01T01:30:00-05:00[America/New_York]",
            "2026-11-01T06:40:00Z",
        ),
        (
            "2026-10-25T02:30:00+02:00[Europe/Paris]",
            "2026-10-25T00:40:00Z",
        ),
        (
            "2026-10-25T02:30:00+01:00[Europe/Paris]",
            "2026-10-25T01:40:00Z",
        ),
    ] {
        let now: Zoned = now.parse().unwrap();
        for text in ["+10 minutes", "+10m", "in 10 min"] {
            let parsed = parse(text, &now, DateOrder::DayFirst);
            assert_eq!(parsed, Ok(expected.parse().unwrap()), "{text} at {now}");
        }
        let parsed = parse("now", &now, DateOrder::DayFirst);
        assert_eq!(parsed, Ok(now.timestamp()), "{now}");
    }
    // The day of the change has 25 hours.
    let saturday = "2026-10-24T12:00[Europe/Paris]".parse().unwrap();
    for (text, expected) in [
        ("+24 hours", "2026-10-25T10:00:00Z"),
        ("+1 day", "2026-10-25T11:00:00Z"),
        ("+1 day 2 hours", "2026-10-25T13:00:00Z"),
    ] {
        let parsed = parse(text, &saturday, DateOrder::DayFirst);
        assert_eq!(parsed, Ok(expected.parse().unwrap()), "{text}");
    }
}
