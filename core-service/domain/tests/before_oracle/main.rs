//! Random expressions, read by us and by PHP. Runs where `php` is found: one process answers all.
//! `BEFORE_ORACLE_COUNT` and `BEFORE_ORACLE_SEED` choose how many expressions, and which.

mod expression;
mod php;
mod piece;
mod random;

use domain::before::{DateOrder, Error, parse};
use expression::Expression;
use jiff::Timestamp;
use random::Random;
use std::collections::BTreeMap;
use std::io::Write;

const DEFAULT_COUNT: usize = 5_000;
const DEFAULT_SEED: u64 = 20_261_021;

/// How our answer compares with PHP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Same,
    BothRefuse,
    /// A time before a day word: PHP gives this answer when the time is repeated at its end.
    Improved,
    RefusedRange,
    RefusedDate,
    RefusedLetter,
    RefusedSlashes,
    RefusedTimestamp,
    /// Outside of what our calendar can tell.
    TooFar,
    /// An everyday phrase or a form that PHP lacks.
    Superset,
    Unexplained,
}

#[test]
fn php_gives_the_same_answers_but_where_we_say_so() {
    let count = setting("BEFORE_ORACLE_COUNT").unwrap_or(DEFAULT_COUNT);
    let seed = setting("BEFORE_ORACLE_SEED").unwrap_or(DEFAULT_SEED);
    let mut random = Random::new(seed);
    let expressions: Vec<Expression> = (0..count)
        .map(|_| Expression::random(&mut random))
        .collect();
    let Some(answers) = php::answers(&expressions) else {
        say("skipped: no php here to compare with");
        return;
    };
    assert_eq!(answers.len(), expressions.len());

    let mut outcomes = BTreeMap::<Outcome, usize>::new();
    let mut unexplained = Vec::new();
    for (expression, answer) in expressions.iter().zip(&answers) {
        let ours = parse(&expression.text, &expression.now, expression.order);
        let outcome = compare(expression, answer, &ours);
        *outcomes.entry(outcome).or_default() += 1;
        if outcome == Outcome::Unexplained {
            unexplained.push(format!("{expression}: ours {ours:?}, php {answer:?}"));
        }
    }

    say(&format!("seed {seed}, {count} expressions: {outcomes:?}"));
    assert!(
        unexplained.is_empty(),
        "{} unexplained:\n{}",
        unexplained.len(),
        unexplained.join("\n")
    );
}

fn compare(expression: &Expression, php: &php::Answer, ours: &Result<Timestamp, Error>) -> Outcome {
    let seconds = ours.as_ref().ok().map(|instant| instant.as_second());
    match (ours, php.seconds) {
        (Ok(_), php) if seconds == php => Outcome::Same,
        (Ok(ours), _) if php.repeated.contains(&ours.as_second()) => Outcome::Improved,
        (Ok(_), _) if expression.has_lost_meridian() => Outcome::Superset,
        (Ok(_), None) if expression.is_beyond_php() => Outcome::Superset,
        (Err(_), None) => Outcome::BothRefuse,
        (Err(Error::Range { .. }), _) if expression.has_range() => Outcome::RefusedRange,
        (Err(Error::NoSuchDate { .. }), _) if php.date_is_invalid => Outcome::RefusedDate,
        (Err(Error::Ambiguous { .. }), _) if expression.order == DateOrder::DayFirst => {
            Outcome::RefusedSlashes
        }
        (Err(Error::Twice { .. }), _) if expression.has_timestamp() => Outcome::RefusedTimestamp,
        (Err(Error::Twice { .. }), _) if expression.has_lost_meridian() => Outcome::Superset,
        (Err(Error::NotUnderstood { .. } | Error::Twice { .. }), _)
            if expression.has_lone_letter() =>
        {
            Outcome::RefusedLetter
        }
        (Err(Error::OutOfRange), Some(seconds)) if Timestamp::from_second(seconds).is_err() => {
            Outcome::TooFar
        }
        (_, _) => Outcome::Unexplained,
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no command line")]
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tells the terminal, past the test harness's capture: a comparison that did not happen must not
/// look like one that did.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "before_oracle: {line}");
}
