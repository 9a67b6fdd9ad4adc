//! Durations: abbreviated units, UTC offsets that are none, fractions, elapsed time.

use jiff::{Timestamp, ToSpan as _, Zoned, tz::TimeZone};
use proptest::{prelude::*, sample::select};

use super::{assert_parsed, assert_rejected};
use crate::before::{DateOrder, parse};

#[test]
fn a_signed_number_with_an_abbreviated_unit_is_a_duration() {
    for (text, local) in [
        ("+2h", "2026-10-21T16:30:45"),
        ("+2 h", "2026-10-21T16:30:45"),
        ("+ 2h", "2026-10-21T16:30:45"),
        ("+2H", "2026-10-21T16:30:45"),
        ("+2 hrs", "2026-10-21T16:30:45"),
        ("+1hr", "2026-10-21T15:30:45"),
        ("+30m", "2026-10-21T15:00:45"),
        ("+90 m", "2026-10-21T16:00:45"),
        ("+30s", "2026-10-21T14:31:15"),
        ("+24h", "2026-10-22T14:30:45"),
        ("+1d", "2026-10-22T14:30:45"),
        ("+1w", "2026-10-28T14:30:45"),
        ("+1h30", "2026-10-21T16:00:45"),
        ("+1h30m", "2026-10-21T16:00:45"),
        ("+1h 30", "2026-10-21T16:00:45"),
        ("+1d2h30min", "2026-10-22T17:00:45"),
        ("+1h 30m 15s", "2026-10-21T16:01:00"),
        ("+1d +2h", "2026-10-22T16:30:45"),
        ("18:00 +30 h", "2026-10-23T00:00"),
        ("18:00 -36 h", "2026-10-20T06:00"),
        ("-2h", "2026-10-21T12:30:45"),
        ("-1h30", "2026-10-21T13:00:45"),
        ("tomorrow 13:00 +1h", "2026-10-22T14:00"),
        ("tomorrow 13:00 +01 h", "2026-10-22T14:00"),
        ("18:00 -2h", "2026-10-21T16:00"),
        ("+2 heures", "2026-10-21T16:30:45"),
        ("+2 jours", "2026-10-23T14:30:45"),
        ("+2j", "2026-10-23T14:30:45"),
        ("demain 13h +1h", "2026-10-22T14:00"),
        ("+2 Stunden", "2026-10-21T16:30:45"),
        ("+2 horas", "2026-10-21T16:30:45"),
        ("+2 ore", "2026-10-21T16:30:45"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    // A capital M may mean months, and 18h a time of day.
    for text in [
        "+6M",
        "+2y",
        "+2x",
        "+2hx",
        "+h",
        "+2h x",
        "-1h 30m",
        "+1d 18h",
        "+2 days 18h",
        "in 2 days 18h",
        "dans 2 jours 18 heures",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_preposition_of_duration_takes_abbreviated_units_too() {
    for (text, local) in [
        ("in 30m", "2026-10-21T15:00:45"),
        ("in 1d", "2026-10-22T14:30:45"),
        ("in 2h30", "2026-10-21T17:00:45"),
        ("in 2h and 30m", "2026-10-21T17:00:45"),
        ("within 90min", "2026-10-21T16:00:45"),
        ("dans 30m", "2026-10-21T15:00:45"),
        ("dans 2 h 30 minutes", "2026-10-21T17:00:45"),
        ("in 45 min", "2026-10-21T15:15:45"),
        ("2h from now", "2026-10-21T16:30:45"),
        ("in 2 hours from now", "2026-10-21T16:30:45"),
        ("2h ago", "2026-10-21T12:30:45"),
        ("in 2 days at 18h", "2026-10-23T18:00"),
        ("dans 2 jours à 18h", "2026-10-23T18:00"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    for text in ["in 2 hours ago", "in +2h", "in 30"] {
        assert_rejected(text);
    }
}

#[test]
fn a_number_is_a_utc_offset_only_right_after_a_time_of_day() {
    for text in [
        "10:00+02:00",
        "10:00 +02:00",
        "10:00 +0200",
        "10:00 +02",
        "10 am +0200",
        "10:00 GMT+2",
        "Wed Oct 21 10:00:00 2026 +0200",
        "10:00 +02:00 CEST",
    ] {
        assert_parsed(text, "2026-10-21T10:00[Europe/Paris]");
    }
    for text in [
        "10:00 +2",
        "10:00+2",
        "10:00 +200",
        "10:00 +2:00",
        "10:00 UTC+2",
        "10:00 UTC +02:00",
        "10:00 CET foo",
        "tomorrow +02:00",
        "tomorrow +2",
        "noon +02",
        "2026-11-25 +02:00",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_fraction_of_an_hour_is_a_half_or_a_quarter_or_rejected() {
    for (text, local) in [
        ("+1.5 hours", "2026-10-21T16:00:45"),
        ("+1.5h", "2026-10-21T16:00:45"),
        ("+0,75 heures", "2026-10-21T15:15:45"),
        ("in 1.25 hours", "2026-10-21T15:45:45"),
        ("dans 1,5 heure", "2026-10-21T16:00:45"),
        ("in 2,5 Stunden", "2026-10-21T17:00:45"),
        ("tomorrow 13:00 +1.5 hours", "2026-10-22T14:30"),
        ("10:00 +01.5 hours", "2026-10-21T11:30"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
    for text in [
        "1.5 hours",
        "1,5 hours",
        ".5 hours",
        "+.5 hours",
        "tomorrow 10:00,5 hours",
        "10:00 .5 hours",
        "+1.3 hours",
        "in 2.30 hours",
        "+1.5 days",
    ] {
        assert_rejected(text);
    }
}

#[test]
fn a_duration_beside_a_preposition_and_another_time_is_rejected() {
    for text in [
        "15 min before 18:00",
        "15min before 18:00",
        "+15m before 18:00",
        "2 days before friday",
        "2 days before",
        "3 weekdays before friday",
        "half an hour before noon",
        "an hour before 18:00",
        "2 hours by 18:00",
        "in 2 days before 18:00",
        "2 days after friday",
        "1 hour until noon",
        "10 minutes past 6pm",
        "15 minutes to 18:00",
        "2 hours from 18:00",
        "30 minutes avant 18h",
        "2 heures avant midi",
        "30 minutes jusqu'à 18h",
        "2 jours après lundi",
        "2 Stunden vor 18 Uhr",
        "30 Minuten bis 18 Uhr",
        "2 Tage vor dem 25. November",
        "2 Stunden nach 18 Uhr",
        "30 minutos antes de las 18",
        "2 días antes del lunes",
        "30 minuti prima delle 18",
        "un'ora prima delle 18",
        "2 giorni prima di lunedì",
    ] {
        assert_rejected(text);
    }
    for (text, local) in [
        ("the day after tomorrow before 10:00", "2026-10-23T10:00"),
        ("vor 18 Uhr", "2026-10-21T18:00"),
        ("morgen vor 18 Uhr", "2026-10-22T18:00"),
        ("vor einer halben Stunde", "2026-10-21T14:00:45"),
        ("vor dem 25. November", "2026-11-25T00:00"),
    ] {
        assert_parsed(text, &in_paris(local));
    }
}

fn in_paris(local: &str) -> String {
    format!("{local}[Europe/Paris]")
}

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

/// Parts of texts without a time of day that is not a duration from now.
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
