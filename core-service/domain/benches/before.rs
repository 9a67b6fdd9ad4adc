//! Time to parse a `before` text, by kind, and the slowest texts. Goal: under 5 µs for common
//! texts. Run with `cargo bench -p domain --bench before`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use domain::before::{DateOrder, parse};
use jiff::Zoned;

/// Expressions with PHP's results. Those rejected by PHP are also parsed as natural language.
const CORPUS: &str = include_str!("../src/before/tests/corpus.tsv");

const NATURAL_LANGUAGE: [&str; 16] = [
    "by 6pm",
    "tomorrow at 17:30",
    "in 2 hours",
    "before noon on friday",
    "this evening",
    "end of day",
    "demain à 13h",
    "lundi prochain à 9h30",
    "dans 2 heures",
    "ce soir",
    "morgen um 13 Uhr",
    "nächsten Montag um 9:30 Uhr",
    "mañana a las 13:00",
    "el próximo lunes a las 9",
    "domani alle 13",
    "lunedì prossimo alle 9:30",
];

const ZONED: [&str; 6] = [
    "2026-11-25 10:00 Europe/Paris",
    "2026-11-25 10:00 America/Argentina/Buenos_Aires",
    "tomorrow 10:00 Australia/Lord_Howe",
    "2026-11-25T10:00:00+01:00",
    "2026-11-25T10:00[Europe/Paris]",
    "2026-11-25T10:00:00+01:00[Europe/Paris]",
];

const ROUNDS: usize = 50;
const ITERATIONS_PER_ROUND: u32 = 200;

fn main() {
    let now: Zoned = "2026-10-21T14:30:45+02:00[Europe/Paris]"
        .parse()
        .expect("a valid time");
    let (accepted, rejected): (Vec<_>, Vec<_>) = CORPUS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(text, _)| text.to_owned())
        .partition(|text| parse(text, &now, DateOrder::DayFirst).is_ok());
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();

    report("accepted", accepted, &now);
    report("rejected", rejected, &now);
    report("natural language", owned(&NATURAL_LANGUAGE), &now);
    report("with a zone", owned(&ZONED), &now);
    report("hostile", hostile(), &now);
}

/// Texts of almost the maximum length that are expensive to reject.
fn hostile() -> Vec<String> {
    [
        "+1 day ",
        "next ",
        "le ",
        "1",
        "(",
        "Oz/",
        "2026-11-25 ",
        "first monday of ",
    ]
    .iter()
    .map(|piece| {
        let mut text = piece.repeat(126 / piece.len());
        text.push('!');
        text
    })
    .collect()
}

fn report(kind: &str, texts: Vec<String>, now: &Zoned) {
    let mut timed: Vec<_> = texts
        .into_iter()
        .map(|text| (fastest_round(&text, now), text))
        .collect();
    timed.sort_unstable();
    let count = u32::try_from(timed.len()).unwrap_or(u32::MAX);
    let mean = timed.iter().map(|(time, _)| *time).sum::<Duration>() / count;
    let under_goal = timed
        .iter()
        .filter(|(time, _)| *time < Duration::from_micros(5));
    println!(
        "{kind}: {count} texts, {mean:?} on average, {} under 5 µs",
        under_goal.count()
    );
    for (time, text) in timed.iter().rev().take(3) {
        println!("    {time:?} {text}");
    }
}

/// The fastest round: other load on the machine only makes rounds slower.
fn fastest_round(text: &str, now: &Zoned) -> Duration {
    let round = || {
        let started = Instant::now();
        for _ in 0..ITERATIONS_PER_ROUND {
            let _ = black_box(parse(black_box(text), now, DateOrder::DayFirst));
        }
        started.elapsed() / ITERATIONS_PER_ROUND
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}
