//! PHP's results for expressions used by clients, and our deliberate differences.

use super::now;
use crate::before::{DateOrder, parse};
use jiff::{Timestamp, Zoned};

/// The expected result, where it differs from PHP's.
enum Expected {
    Time(&'static str),
    Rejected,
}

/// All rows with a result that differs from PHP's.
const DIFFERENCES: &[(&str, Expected)] = &[
    // Rejected; PHP misreads them.
    ("a day", Expected::Rejected),
    ("2026-02-30", Expected::Rejected),
    ("10:00-11:00", Expected::Rejected),
    ("2026-11-25 10:00-11:00", Expected::Rejected),
    // Rejected; PHP returns the present time of day, in the time zone if one is named.
    (".", Expected::Rejected),
    ("UTC", Expected::Rejected),
    ("+02:00", Expected::Rejected),
    // Rejected; PHP takes the number for an offset from UTC, or `.5 hours` for five hours.
    ("10:00 +2", Expected::Rejected),
    ("tomorrow +02:00", Expected::Rejected),
    ("2026-11-25T14:00:00+24:00", Expected::Rejected),
    (".5 hours", Expected::Rejected),
    // A signed number with an abbreviated unit or a fraction is a duration; PHP reads an offset
    // from UTC, and ignores the unit or reads the digits of the fraction as a whole number.
    ("+2h", Expected::Time("2026-10-21T16:30:45[Europe/Paris]")),
    ("+30m", Expected::Time("2026-10-21T15:00:45[Europe/Paris]")),
    ("+24h", Expected::Time("2026-10-22T14:30:45[Europe/Paris]")),
    ("+1d", Expected::Time("2026-10-22T14:30:45[Europe/Paris]")),
    ("+1w", Expected::Time("2026-10-28T14:30:45[Europe/Paris]")),
    (
        "tomorrow 13:00 +1h",
        Expected::Time("2026-10-22T14:00[Europe/Paris]"),
    ),
    (
        "+1.5 hours",
        Expected::Time("2026-10-21T16:00:45[Europe/Paris]"),
    ),
    // A time before a day is not reset to midnight.
    (
        "noon tomorrow",
        Expected::Time("2026-10-22T12:00[Europe/Paris]"),
    ),
    (
        "13:00 tomorrow",
        Expected::Time("2026-10-22T13:00[Europe/Paris]"),
    ),
    (
        "9am tomorrow",
        Expected::Time("2026-10-22T09:00[Europe/Paris]"),
    ),
    (
        "18:00 friday",
        Expected::Time("2026-10-23T18:00[Europe/Paris]"),
    ),
    // Accepted; PHP rejects them.
    ("+1h30", Expected::Time("2026-10-21T16:00:45[Europe/Paris]")),
    (
        "today at 6pm",
        Expected::Time("2026-10-21T18:00[Europe/Paris]"),
    ),
    (
        "today at 18:00",
        Expected::Time("2026-10-21T18:00[Europe/Paris]"),
    ),
    (
        "tomorrow at 5pm",
        Expected::Time("2026-10-22T17:00[Europe/Paris]"),
    ),
    (
        "tomorrow at 17:30",
        Expected::Time("2026-10-22T17:30[Europe/Paris]"),
    ),
    (
        "tomorrow at noon",
        Expected::Time("2026-10-22T12:00[Europe/Paris]"),
    ),
    ("at 5pm", Expected::Time("2026-10-21T17:00[Europe/Paris]")),
    (
        "friday at 18:00",
        Expected::Time("2026-10-23T18:00[Europe/Paris]"),
    ),
    (
        "before 5pm",
        Expected::Time("2026-10-21T17:00[Europe/Paris]"),
    ),
    ("by 5pm", Expected::Time("2026-10-21T17:00[Europe/Paris]")),
    (
        "1 hour from now",
        Expected::Time("2026-10-21T15:30:45[Europe/Paris]"),
    ),
    (
        "in 2 hours",
        Expected::Time("2026-10-21T16:30:45[Europe/Paris]"),
    ),
    (
        "in 30 minutes",
        Expected::Time("2026-10-21T15:00:45[Europe/Paris]"),
    ),
    (
        "in 1 day",
        Expected::Time("2026-10-22T14:30:45[Europe/Paris]"),
    ),
    (
        "in an hour",
        Expected::Time("2026-10-21T15:30:45[Europe/Paris]"),
    ),
    ("tonight", Expected::Time("2026-10-21T22:00[Europe/Paris]")),
    (
        "this evening",
        Expected::Time("2026-10-21T20:00[Europe/Paris]"),
    ),
    (
        "end of day",
        Expected::Time("2026-10-21T23:59[Europe/Paris]"),
    ),
    (
        "25/11/2026",
        Expected::Time("2026-11-25T00:00[Europe/Paris]"),
    ),
    (
        "25/11/2026 10:00",
        Expected::Time("2026-11-25T10:00[Europe/Paris]"),
    ),
    ("demain", Expected::Time("2026-10-22T00:00[Europe/Paris]")),
    (
        "demain 13:00",
        Expected::Time("2026-10-22T13:00[Europe/Paris]"),
    ),
    (
        "demain à 10h",
        Expected::Time("2026-10-22T10:00[Europe/Paris]"),
    ),
    (
        "aujourd'hui 18:00",
        Expected::Time("2026-10-21T18:00[Europe/Paris]"),
    ),
    (
        "lundi prochain",
        Expected::Time("2026-10-26T00:00[Europe/Paris]"),
    ),
    (
        "dans 2 heures",
        Expected::Time("2026-10-21T16:30:45[Europe/Paris]"),
    ),
    ("ce soir", Expected::Time("2026-10-21T20:00[Europe/Paris]")),
    (
        "le 25 novembre 2026",
        Expected::Time("2026-11-25T00:00[Europe/Paris]"),
    ),
    (
        "mañana 10:00",
        Expected::Time("2026-10-22T10:00[Europe/Paris]"),
    ),
    (
        "morgen 10:00",
        Expected::Time("2026-10-22T10:00[Europe/Paris]"),
    ),
];

#[test]
fn results_equal_those_of_php_except_for_listed_differences() {
    let rows = include_str!("corpus.tsv")
        .lines()
        .filter(|row| !row.starts_with('#'));
    let mut failures = Vec::new();
    for row in rows.clone() {
        let (text, php) = row.rsplit_once('\t').unwrap();
        let php = php
            .parse()
            .ok()
            .map(|seconds| Timestamp::from_second(seconds).unwrap());
        let expected = match DIFFERENCES.iter().find(|(row, _)| *row == text) {
            Some((_, Expected::Time(time))) => Some(time.parse::<Zoned>().unwrap().timestamp()),
            Some((_, Expected::Rejected)) => None,
            None => php,
        };
        let ours = parse(text, &now(), DateOrder::DayFirst);
        if ours.as_ref().ok() != expected.as_ref() {
            failures.push(format!("{text:?}: {ours:?}, not {expected:?}"));
        }
    }
    assert_eq!(rows.count(), 238);
    assert_eq!(failures, Vec::<String>::new());
}
