//! `before` and `after` texts: what people write when they mean an instant. The strict grammar is
//! that of PHP's `strtotime`, which clients rely on; everyday phrases are tried when it fails.

mod automaton;
mod context;
mod error;
mod everyday;
mod grammar;
mod instant;
mod lexer;
mod pattern;
mod reading;
mod relative;
mod slashes;
mod words;
mod zone;

pub use error::Error;

use context::Context;
use jiff::{Timestamp, Zoned};
use reading::Reading;

/// The longest text that is read, in bytes.
pub const LIMIT: usize = 128;

/// How the platform's country writes dates with slashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    DayFirst,
    MonthFirst,
}

impl DateOrder {
    /// The order in the country with this ISO 3166-1 code: month first in the United States, its
    /// territories and a few countries close to it, day first elsewhere.
    pub fn of_country(iso_alpha2: &str) -> Self {
        const MONTH_FIRST: [&str; 12] = [
            "AS", "FM", "GU", "MH", "MP", "PA", "PH", "PR", "PW", "UM", "US", "VI",
        ];
        if MONTH_FIRST
            .iter()
            .any(|country| country.eq_ignore_ascii_case(iso_alpha2))
        {
            Self::MonthFirst
        } else {
            Self::DayFirst
        }
    }
}

/// The instant a text means, in whole seconds. Local times are read in the zone of `now`.
pub fn parse(text: &str, now: &Zoned, date_order: DateOrder) -> Result<Timestamp, Error> {
    if text.len() > LIMIT {
        return Err(Error::TooLong { length: text.len() });
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::Empty);
    }
    let context = Context {
        original: text,
        origins: &[],
        today: now.date(),
        order: date_order,
    };
    let refusal = match read(text, context).and_then(|reading| instant::resolve(reading, now)) {
        Err(refusal @ Error::NotUnderstood { .. }) => refusal,
        result => return result,
    };
    everyday::parse(context, now).map_err(|everyday| farther(refusal, everyday))
}

/// Reads a text of the strict grammar from one end to the other.
fn read(text: &str, context: Context<'_>) -> Result<Reading, Error> {
    if let Some(at) = text.find('\0') {
        return Err(context.not_understood(at));
    }
    let mut reading = Reading::default();
    let mut start = 0;
    while start < text.len() {
        let token = lexer::token(text, start).ok_or_else(|| context.not_understood(start))?;
        reading.apply(&token, context)?;
        start = token.end();
    }
    Ok(reading)
}

/// Of two refusals, the one that says more.
fn farther(strict: Error, everyday: Error) -> Error {
    match (&strict, &everyday) {
        (
            Error::NotUnderstood {
                understood: less, ..
            },
            Error::NotUnderstood {
                understood: more, ..
            },
        ) if more.len() <= less.len() => strict,
        _ => everyday,
    }
}

#[cfg(test)]
mod tests;
