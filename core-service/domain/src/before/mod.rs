//! Parses the texts of `before` and `after` into instants. The strict grammar is that of PHP's
//! `strtotime`, which clients rely on; natural language is tried if the strict grammar does not
//! recognize the text. A text that PHP misreads is rejected, or parsed as natural language: `+2h`
//! is a duration, not an offset.

/// A table of pairs, a row per line.
macro_rules! table {
    ($($key:expr => $value:expr;)+) => {
        &[$(($key, $value)),+]
    };
}

mod calendar;
mod context;
mod error;
mod grammar;
mod instant;
mod lexer;
mod natural_language;
mod numbers;
mod parsed_time;
mod relative;
mod time_zone;
mod word_tables;

pub use context::DateOrder;
pub use error::Error;

use context::Context;
use jiff::{Timestamp, Zoned};
use parsed_time::ParsedTime;

/// The maximum length of a text in bytes.
const MAX_LENGTH: usize = 128;

/// The instant that a text means, in whole seconds. Local times are in the time zone of `now`.
pub fn parse(text: &str, now: &Zoned, date_order: DateOrder) -> Result<Timestamp, Error> {
    if text.len() > MAX_LENGTH {
        return Err(Error::TooLong {
            length: text.len(),
            limit: MAX_LENGTH,
        });
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let context = Context {
        original: text,
        original_positions: &[],
        is_from_now: false,
        today: now.date(),
        date_order,
    };
    let strict = ParsedTime::parse(text, context).and_then(|parsed| instant::resolve(parsed, now));
    match strict {
        Err(strict @ Error::Unrecognized { .. }) => natural_language::parse(context, now)
            .map_err(|natural_language| more_specific(strict, natural_language)),
        result => result,
    }
}

/// Returns the error of the grammar that understood the longer part of the text, or of the strict
/// one if both understood as much. An error of another kind from natural language takes precedence.
fn more_specific(strict: Error, natural_language: Error) -> Error {
    let understood = |error: &Error| match error {
        Error::Unrecognized { understood, .. } => Some(understood.len()),
        _ => None,
    };
    match understood(&natural_language) {
        Some(length) if Some(length) <= understood(&strict) => strict,
        _ => natural_language,
    }
}

#[cfg(test)]
mod tests;
