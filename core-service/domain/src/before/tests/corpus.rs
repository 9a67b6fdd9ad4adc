//! PHP's answers to expressions that clients write, and where ours differ on purpose.

use super::now;
use crate::before::{DateOrder, parse};
use jiff::{Timestamp, Zoned};

/// What a row of the corpus has instead of PHP's answer.
enum Ours {
    Time(&'static str),
    Refused,
}

/// Every row where we do not answer as PHP does.
const DELIBERATE: &[(&str, Ours)] = &[
    // Refused, where PHP misreads.
    ("a day", Ours::Refused),
    ("2026-02-30", Ours::Refused),
    ("10:00-11:00", Ours::Refused),
    ("2026-11-25 10:00-11:00", Ours::Refused),
    // A time before a day keeps its time.
    (
        "noon tomorrow",
        Ours::Time("2026-10-22T12:00[Europe/Paris]"),
    ),
    (
        "13:00 tomorrow",
        Ours::Time("2026-10-22T13:00[Europe/Paris]"),
    ),
    ("9am tomorrow", Ours::Time("2026-10-22T09:00[Europe/Paris]")),
    ("18:00 friday", Ours::Time("2026-10-23T18:00[Europe/Paris]")),
    // Understood, where PHP does not.
    ("today at 6pm", Ours::Time("2026-10-21T18:00[Europe/Paris]")),
    (
        "today at 18:00",
        Ours::Time("2026-10-21T18:00[Europe/Paris]"),
    ),
    (
        "tomorrow at 5pm",
        Ours::Time("2026-10-22T17:00[Europe/Paris]"),
    ),
    (
        "tomorrow at 17:30",
        Ours::Time("2026-10-22T17:30[Europe/Paris]"),
    ),
    (
        "tomorrow at noon",
        Ours::Time("2026-10-22T12:00[Europe/Paris]"),
    ),
    ("at 5pm", Ours::Time("2026-10-21T17:00[Europe/Paris]")),
    (
        "friday at 18:00",
        Ours::Time("2026-10-23T18:00[Europe/Paris]"),
    ),
    ("before 5pm", Ours::Time("2026-10-21T17:00[Europe/Paris]")),
    ("by 5pm", Ours::Time("2026-10-21T17:00[Europe/Paris]")),
    (
        "1 hour from now",
        Ours::Time("2026-10-21T15:30:45[Europe/Paris]"),
    ),
    (
        "in 2 hours",
        Ours::Time("2026-10-21T16:30:45[Europe/Paris]"),
    ),
    (
        "in 30 minutes",
        Ours::Time("2026-10-21T15:00:45[Europe/Paris]"),
    ),
    ("in 1 day", Ours::Time("2026-10-22T14:30:45[Europe/Paris]")),
    (
        "in an hour",
        Ours::Time("2026-10-21T15:30:45[Europe/Paris]"),
    ),
    ("tonight", Ours::Time("2026-10-21T22:00[Europe/Paris]")),
    ("this evening", Ours::Time("2026-10-21T20:00[Europe/Paris]")),
    ("end of day", Ours::Time("2026-10-21T23:59[Europe/Paris]")),
    ("25/11/2026", Ours::Time("2026-11-25T00:00[Europe/Paris]")),
    (
        "25/11/2026 10:00",
        Ours::Time("2026-11-25T10:00[Europe/Paris]"),
    ),
    ("demain", Ours::Time("2026-10-22T00:00[Europe/Paris]")),
    ("demain 13:00", Ours::Time("2026-10-22T13:00[Europe/Paris]")),
    ("demain à 10h", Ours::Time("2026-10-22T10:00[Europe/Paris]")),
    (
        "aujourd'hui 18:00",
        Ours::Time("2026-10-21T18:00[Europe/Paris]"),
    ),
    (
        "lundi prochain",
        Ours::Time("2026-10-26T00:00[Europe/Paris]"),
    ),
    (
        "dans 2 heures",
        Ours::Time("2026-10-21T16:30:45[Europe/Paris]"),
    ),
    ("ce soir", Ours::Time("2026-10-21T20:00[Europe/Paris]")),
    (
        "le 25 novembre 2026",
        Ours::Time("2026-11-25T00:00[Europe/Paris]"),
    ),
    ("mañana 10:00", Ours::Time("2026-10-22T10:00[Europe/Paris]")),
    ("morgen 10:00", Ours::Time("2026-10-22T10:00[Europe/Paris]")),
    ("10h30", Ours::Time("2026-10-21T10:30[Europe/Paris]")),
];

#[test]
fn the_corpus_is_answered_as_php_answers_but_where_we_say_so() {
    let rows = include_str!("corpus.tsv")
        .lines()
        .filter(|row| !row.starts_with('#'));
    let mut disagreements = Vec::new();
    for row in rows.clone() {
        let (text, php) = row.rsplit_once('\t').unwrap();
        let php = php
            .parse()
            .ok()
            .map(|seconds| Timestamp::from_second(seconds).unwrap());
        let expected = match DELIBERATE.iter().find(|(ours, _)| *ours == text) {
            Some((_, Ours::Time(time))) => Some(time.parse::<Zoned>().unwrap().timestamp()),
            Some((_, Ours::Refused)) => None,
            None => php,
        };
        let ours = parse(text, &now(), DateOrder::DayFirst);
        if ours.as_ref().ok() != expected.as_ref() {
            disagreements.push(format!("{text:?}: {ours:?}, not {expected:?}"));
        }
    }
    assert_eq!(rows.count(), 217);
    assert_eq!(disagreements, Vec::<String>::new());
}
