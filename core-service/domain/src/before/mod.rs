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
pub(crate) use time_zone::UTC_OFFSETS;

use crate::visible::visible;
use context::Context;
use jiff::{Timestamp, Zoned};
use parsed_time::ParsedTime;

/// The maximum length of a text in bytes.
const MAX_LENGTH: usize = 128;

/// The instant that a text means, in whole seconds. Local times are in the time zone of `now`.
pub fn parse(text: &str, now: &Zoned, date_order: DateOrder) -> Result<Timestamp, Error> {
    let text = &*visible(text);
    if text.len() > MAX_LENGTH {
        return Err(Error::TooLong {
            length: text.len(),
            limit: MAX_LENGTH,
        });
    }
    let text = without_zone_name(text.trim());
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let context = Context {
        original: text,
        original_positions: &[],
        is_from_now: false,
        has_hour_alone: false,
        today: now.date(),
        date_order,
    };
    let strict = ParsedTime::parse(text, context).and_then(|parsed| instant::resolve(parsed, now));
    match strict {
        Err(strict @ Error::Unrecognized { .. }) => natural_language::parse(context, now)
            .map_err(|error| natural_language::as_range(more_specific(strict, error), text)),
        result => result,
    }
}

/// The text without what JavaScript's `Date.prototype.toString` adds to an offset: `GMT+0100 (Central European
/// Standard Time)`.
fn without_zone_name(text: &str) -> &str {
    let Some((time, name)) = text.split_once(" (") else {
        return text;
    };
    let offset = time.rsplit_once(" GMT").map(|(_, offset)| offset);
    let is_offset = offset.is_some_and(|offset| {
        let digits = offset.strip_prefix(['+', '-']).unwrap_or_default();
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_offset && name.ends_with(')') {
        time
    } else {
        text
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
