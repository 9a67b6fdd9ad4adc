//! Compares our parser with PHP's `strtotime` on random expressions. Skipped if `php` is not
//! installed. `PHP_COMPARISON_COUNT` sets the number of expressions, `PHP_COMPARISON_SEED` the seed.

mod expression;
mod php;
mod piece;
#[path = "../../../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;
mod random;

use domain::before::{Error, parse};
use expression::Expression;
use jiff::Timestamp;
use php::LocalTime;
use random::Random;
use std::collections::BTreeMap;
use std::io::Write;

const DEFAULT_COUNT: usize = 5_000;
const DEFAULT_SEED: u64 = 20_261_021;

/// How our result compares with PHP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    BothReject,
    /// A signed number with an abbreviated unit or a fraction of an hour. PHP agrees if the units
    /// are written out.
    Duration,
    /// Hours from now elapse across a clock change; PHP adds them to the local time.
    Elapsed,
    /// A time before a day word. PHP agrees if the time is repeated at the end.
    Improved,
    /// A weekday or a day word that agrees with another day. PHP agrees if it is left out.
    Agreeing,
    /// We reject a range of two times.
    RejectedRange,
    /// We reject a date that does not exist.
    RejectedDate,
    /// We reject hours, minutes or seconds ago beside a day or a time of day.
    RejectedAgo,
    /// We reject days that contradict each other.
    RejectedDay,
    /// We reject a duration without a sign beside a day or a time of day.
    RejectedUnsigned,
    /// We reject a single letter that PHP takes for a military zone.
    RejectedLetter,
    /// We reject an offset from UTC that is not in use, not written in full, or not directly after
    /// a time of day.
    RejectedOffset,
    /// We reject a zone without a local time.
    RejectedZone,
    /// A second zone that does not exist, such as `hours` in `10 september 24hours`. PHP ignores
    /// it.
    SecondZone,
    /// We reject an amount after a decimal point, such as `5 hours` in `.5 hours`.
    RejectedFraction,
    /// We reject numbers, a number before a weekday, `mar`, and a month without a day.
    RejectedAmbiguous,
    /// We read numbers with dots or hyphens, or four digits after a month, as a date where PHP reads a
    /// time, or the other way round.
    Numbers,
    /// 24:00 is at the end of a weekday; PHP counts the weekday from the day after.
    EndOfDay,
    /// We reject a second time. PHP takes the last one if a day is between them.
    RejectedTime,
    /// We reject a Unix time beside other parts.
    RejectedTimestamp,
    /// Outside the range of our calendar.
    OutOfRange,
    /// Natural language or a notation that PHP lacks.
    Superset,
    Unexplained,
}

#[test]
fn results_equal_those_of_php_except_for_known_differences() {
    let count = env_var("PHP_COMPARISON_COUNT").unwrap_or(DEFAULT_COUNT);
    let seed = env_var("PHP_COMPARISON_SEED").unwrap_or(DEFAULT_SEED);
    let mut random = Random::new(seed);
    let expressions: Vec<Expression> = (0..count)
        .map(|_| Expression::random(&mut random))
        .collect();
    let Some(php_results) = php::results(&expressions) else {
        prerequisites::skip("the comparison with PHP", "php is not installed");
        return;
    };
    assert_eq!(php_results.len(), expressions.len());

    let mut outcomes = BTreeMap::<Outcome, usize>::new();
    let mut unexplained = Vec::new();
    for (expression, php) in expressions.iter().zip(&php_results) {
        let ours = parse(&expression.text, &expression.now, expression.order);
        let outcome = compare(expression, php, &ours);
        *outcomes.entry(outcome).or_default() += 1;
        if outcome == Outcome::Unexplained {
            unexplained.push(format!("{expression}: ours {ours:?}, php {php:?}"));
        }
    }

    log(&format!("seed {seed}, {count} expressions: {outcomes:?}"));
    assert!(
        unexplained.is_empty(),
        "{} unexplained:\n{}",
        unexplained.len(),
        unexplained.join("\n")
    );
}

fn compare(
    expression: &Expression,
    php: &php::PhpResult,
    ours: &Result<Timestamp, Error>,
) -> Outcome {
    let seconds = ours.as_ref().ok().map(|instant| instant.as_second());
    match (ours, php.seconds) {
        (Ok(_), php) if seconds == php && expression.has_duration() => Outcome::Duration,
        (Ok(_), php) if seconds == php => Outcome::Same,
        (Ok(ours), _) if php.repeated.contains(&ours.as_second()) => Outcome::Improved,
        (Ok(ours), _) if php.with_fewer_days.contains(&ours.as_second()) => Outcome::Agreeing,
        (Ok(_), _) if expression.has_lost_meridiem() => Outcome::Superset,
        (Ok(_), None) if expression.is_beyond_php() => Outcome::Superset,
        (Ok(ours), Some(seconds))
            if php.local_time == LocalTime::Absent
                && expression
                    .clock_changes(*ours)
                    .contains(&ours.as_second().abs_diff(seconds)) =>
        {
            Outcome::Elapsed
        }
        (Err(_), None) => Outcome::BothReject,
        (Err(Error::Range { .. }), _) if expression.has_range() => Outcome::RejectedRange,
        (Err(Error::NoSuchOffset { .. }), _) if php.has_offset => Outcome::RejectedOffset,
        (Err(Error::Unrecognized { .. }), _)
            if php.local_time == LocalTime::Absent && expression.has_zone =>
        {
            Outcome::RejectedZone
        }
        (Err(Error::Unrecognized { rejected, .. }), _)
            if (php.has_offset || expression.has_zone)
                && Expression::has_signed_number(rejected) =>
        {
            Outcome::RejectedOffset
        }
        (Ok(_) | Err(Error::Unrecognized { .. }), _) if php.ignores_zone => Outcome::SecondZone,
        (Err(Error::Unrecognized { rejected, .. }), _)
            if expression.is_ago_rejected_at(rejected) =>
        {
            Outcome::RejectedAgo
        }
        (Err(Error::DifferentDays { .. } | Error::Duplicate { kind: "day", .. }), _)
            if expression.has_day() =>
        {
            Outcome::RejectedDay
        }
        (Err(Error::Unrecognized { rejected, .. }), _)
            if expression.is_unsigned_rejected_at(rejected) =>
        {
            Outcome::RejectedUnsigned
        }
        (Err(Error::Unrecognized { rejected, .. }), _) if Expression::has_fraction(rejected) => {
            Outcome::RejectedFraction
        }
        // The month 0.
        (Err(Error::Unrecognized { rejected, .. }), _) if Expression::has_zero(rejected) => {
            Outcome::RejectedDate
        }
        (Err(Error::NoSuchDate { .. }), _) if php.local_time == LocalTime::Invalid => {
            Outcome::RejectedDate
        }
        (Err(Error::Ambiguous { text, .. }), _) if Expression::has_readings(text) => {
            Outcome::RejectedAmbiguous
        }
        (Err(Error::Unrecognized { rejected, .. }), _) if rejected.starts_with("mar") => {
            Outcome::RejectedAmbiguous
        }
        (Ok(_), _) if expression.has_numbers() => Outcome::Numbers,
        (Ok(_), _) if expression.ends_with_day() => Outcome::EndOfDay,
        (Err(Error::Duplicate { kind: "date", .. }), _) if expression.has_hyphens() => {
            Outcome::Numbers
        }
        (Err(Error::Duplicate { kind: "time", .. }), _) if expression.time_count > 1 => {
            Outcome::RejectedTime
        }
        (
            Err(Error::Duplicate {
                kind: "time zone", ..
            }),
            _,
        ) => Outcome::SecondZone,
        (Err(Error::Duplicate { .. }), _) if expression.has_timestamp() => {
            Outcome::RejectedTimestamp
        }
        (Err(Error::Duplicate { .. }), _) if expression.has_lost_meridiem() => Outcome::Superset,
        (Err(Error::Unrecognized { .. } | Error::Duplicate { .. }), _)
            if expression.has_lone_letter() =>
        {
            Outcome::RejectedLetter
        }
        (Err(Error::OutOfRange), Some(seconds))
            if expression.has_large_amount() || Timestamp::from_second(seconds).is_err() =>
        {
            Outcome::OutOfRange
        }
        (_, _) => Outcome::Unexplained,
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no command line")]
fn env_var<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Prints to the terminal, past the test runner's capture.
fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "php_comparison: {line}");
}
