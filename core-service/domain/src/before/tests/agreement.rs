//! Texts with two readings: hours after `d'ici`, ranges, hours ago beside a day.

use super::{assert_parsed, now};
use crate::before::{DateOrder, parse};

fn assert_messages(rows: &[(&str, &str)]) {
    let failures: Vec<_> = rows
        .iter()
        .map(|(text, message)| (text, message, parse(text, &now(), DateOrder::DayFirst)))
        .filter(|(_, message, parsed)| {
            parsed.as_ref().map_err(ToString::to_string) != Err(message.to_string())
        })
        .map(|(text, _, parsed)| format!("{text:?}: {:?}", parsed.map_err(|e| e.to_string())))
        .collect();
    assert_eq!(failures, Vec::<String>::new());
}

fn assert_all_parsed(rows: &[(&str, &str)]) {
    for (text, local) in rows {
        assert_parsed(text, &format!("{local}[Europe/Paris]"));
    }
}

#[test]
fn hours_after_d_ici_are_a_time_of_day_or_a_duration() {
    const MIDDLE: &str = "is a time of day or a duration: write";
    for (text, quoted, time, duration) in [
        ("d'ici 18h", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
        ("d’ici 2h30", "d’ici 2h30", "d'ici à 2h30", "dans 2 h 30"),
        ("d'ici 2 heures", "d'ici 2 heures", "d'ici à 2h", "dans 2 h"),
        (
            "d'ici 18 heures 30",
            "d'ici 18 heures 30",
            "d'ici à 18h30",
            "dans 18 h 30",
        ),
        (
            "d'ici à 2 heures",
            "d'ici à 2 heures",
            "d'ici à 2h",
            "dans 2 h",
        ),
        (
            "d'ici deux heures",
            "d'ici deux heures",
            "d'ici à 2h",
            "dans 2 h",
        ),
        ("demain d'ici 18h", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
        ("d'ici 18h demain", "d'ici 18h", "d'ici à 18h", "dans 18 h"),
    ] {
        let error = parse(text, &now(), DateOrder::DayFirst).map_err(|error| error.to_string());
        let message = format!("{quoted:?} {MIDDLE} {time} or {duration}");
        assert_eq!(error, Err(message), "{text:?}");
    }
    assert_all_parsed(&[
        ("d'ici à 18h", "2026-10-21T18:00"),
        ("d'ici à 2h30", "2026-10-21T02:30"),
        ("d’ici à 18 h 30", "2026-10-21T18:30"),
        ("d'ici à 18:00", "2026-10-21T18:00"),
        ("d'ici 18:00", "2026-10-21T18:00"),
        ("d'ici à demain 18h", "2026-10-22T18:00"),
        ("d'ici demain 18h", "2026-10-22T18:00"),
        ("d'ici 48h", "2026-10-23T14:30:45"),
        ("d'ici 2 h 30 minutes", "2026-10-21T17:00:45"),
        ("d'ici 1,5 heure", "2026-10-21T16:00:45"),
        ("d'ici 30 minutes", "2026-10-21T15:00:45"),
        ("d'ici à 30 minutes", "2026-10-21T15:00:45"),
        ("d'ici à 2 jours", "2026-10-23T14:30:45"),
        ("dans 18 h", "2026-10-22T08:30:45"),
        ("dans 2 h 30", "2026-10-21T17:00:45"),
    ]);
    assert_messages(&[(
        "30 minutes d'ici à 18h",
        "understood \"30 minutes\", but not \"d'ici\"; \
         write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h",
    )]);
}

#[test]
fn a_hyphen_after_a_time_without_seconds_is_a_range() {
    for (text, range) in [
        ("10:00 -11:00", "10:00 -11:00"),
        ("10:00 -03:00", "10:00 -03:00"),
        ("10:00 -0300", "10:00 -0300"),
        ("10:00 -03", "10:00 -03"),
        ("2026-10-21 10:00 -11:00", "10:00 -11:00"),
        ("2026-10-21 1000 -1100", "1000 -1100"),
        ("tomorrow 10:00 -11:00", "10:00 -11:00"),
    ] {
        let message = format!("{range:?} is a range, not one time: use timeSlot");
        assert_messages(&[(text, &message)]);
    }
    assert_all_parsed(&[
        ("Wed, 21 Oct 2026 10:00:00 -0300", "2026-10-21T15:00"),
        ("Wed, 21 Oct 2026 10:00 -0300", "2026-10-21T15:00"),
        ("2026-10-21 10:00:00 -03:00", "2026-10-21T15:00"),
        ("2026-10-21 10:00:00-03:00", "2026-10-21T15:00"),
        ("2026-10-21T10:00 -03:00", "2026-10-21T15:00"),
        ("10:00:00 -03:00", "2026-10-21T15:00"),
        ("10:00 +02:00", "2026-10-21T10:00"),
        ("18:00 -2h", "2026-10-21T16:00"),
    ]);
}

#[test]
fn hours_ago_beside_a_day_or_a_time_of_day_are_rejected() {
    const ADVICE: &str = "; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h";
    for (text, understood) in [
        (
            "il y a 2 heures aujourd'hui",
            r#"understood "il y a 2 heures", but not "aujourd'hui""#,
        ),
        (
            "heute vor 2 Stunden",
            r#"understood "heute vor 2", but not "Stunden""#,
        ),
        (
            "today 2 hours ago",
            r#"understood "today 2 hours", but not "ago""#,
        ),
        (
            "2 hours ago today",
            r#"understood "2 hours", but not "ago""#,
        ),
        (
            "monday 30 minutes ago",
            r#"understood "monday 30 minutes", but not "ago""#,
        ),
        (
            "18:00 2 hours ago",
            r#"understood "18:00 2 hours", but not "ago""#,
        ),
        (
            "15 minutes at 18:00",
            r#"understood "15 minutes", but not "at""#,
        ),
        ("2 hours on monday", r#"understood "2 hours", but not "on""#),
    ] {
        assert_messages(&[(text, &format!("{understood}{ADVICE}"))]);
    }
    assert_all_parsed(&[
        ("2 days ago 18:00", "2026-10-19T18:00"),
        ("2 days ago 18:00 +1 hour", "2026-10-19T19:00"),
        ("2 hours ago", "2026-10-21T12:30:45"),
        ("in 2 days at 18:00", "2026-10-23T18:00"),
    ]);
}
