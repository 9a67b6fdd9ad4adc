//! Everyday phrases in five languages, put in the words of the strict grammar by tables. They are
//! tried only when a text is not in that grammar as it stands.

mod english;
mod french;
mod german;
mod italian;
mod phrase;
mod rewriting;
mod spanish;

use super::context::Context;
use super::error::Error;
use super::instant::{self, offset_at};
use super::read;
use jiff::civil::Time;
use jiff::fmt::temporal::Pieces;
use jiff::{Timestamp, Zoned};
use rewriting::Rewriting;

/// An evening begins at noon at the earliest: `tonight 8:00` leaves open which one is meant.
const NOON: i64 = 12;

pub(super) fn parse(context: Context<'_>, now: &Zoned) -> Result<Timestamp, Error> {
    if let Some(interval) = interval(context.original) {
        return Err(Error::Range {
            range: interval.to_owned(),
        });
    }
    if let Some(instant) = iso(context.original, now)? {
        return Ok(instant);
    }
    let rewriting = Rewriting::of(context)?;
    // The strict grammar has refused the very words of which nothing was rewritten.
    let said = rewriting.text.trim();
    if rewriting.evening.is_none() && (said.is_empty() || said == context.original) {
        return Err(Error::not_understood(context.original, 0));
    }
    let rewritten = Context {
        origins: &rewriting.origins,
        ..context
    };
    let mut reading = read(&rewriting.text, rewritten)?;
    if let Some((evening, at)) = rewriting.evening {
        match reading.clock.filter(|_| reading.has_time()) {
            None => reading.clock = Some(evening),
            Some(clock) if clock.hour < NOON => {
                return Err(Error::not_understood(context.original, at));
            }
            Some(_) => {}
        }
    }
    instant::resolve(reading, now)
}

/// Two ISO 8601 times with a slash or two hyphens between them.
fn interval(text: &str) -> Option<&str> {
    let (from, to) = text.split_once('/').or_else(|| text.split_once("--"))?;
    (Pieces::parse(from).is_ok() && Pieces::parse(to).is_ok()).then_some(text)
}

/// The shapes of ISO 8601 and RFC 9557 that the strict grammar lacks: a decimal comma, a zone in
/// brackets. `None` if the text is not of these; an offset that the zone never has is refused.
fn iso(text: &str, now: &Zoned) -> Result<Option<Timestamp>, Error> {
    let Ok(pieces) = Pieces::parse(text) else {
        return Ok(None);
    };
    let Ok(zone) = pieces.to_time_zone() else {
        return Ok(None);
    };
    let local = pieces
        .date()
        .to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let offset = match (pieces.to_numeric_offset(), &zone) {
        (Some(offset), _) => offset,
        (None, Some(zone)) => offset_at(zone, local, true)?,
        (None, None) => offset_at(now.time_zone(), local, false)?,
    };
    let instant = offset.to_timestamp(local).map_err(|_| Error::OutOfRange)?;
    let is_zulu = pieces
        .offset()
        .is_some_and(|offset| offset == jiff::fmt::temporal::PiecesOffset::Zulu);
    match zone.filter(|_| pieces.time_zone_annotation().is_some()) {
        Some(zone) if !is_zulu && zone.to_offset(instant) != offset => {
            let bracket = text.find('[').unwrap_or_default();
            Err(Error::NotUnderstood {
                understood: text.get(..bracket).unwrap_or_default().to_owned(),
                rest: text.get(bracket..).unwrap_or_default().to_owned(),
            })
        }
        _ => Timestamp::from_second(instant.as_second())
            .map(Some)
            .map_err(|_| Error::OutOfRange),
    }
}
