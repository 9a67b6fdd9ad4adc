//! Natural language in five languages, translated into the strict grammar by tables of phrases.
//! Tried only if the strict grammar rejects a text.

mod dictionary;
mod english;
mod french;
mod german;
mod italian;
mod normalizer;
mod phrase;
mod spanish;

use super::context::Context;
use super::error::Error;
use super::instant::{self, RepeatedTime, offset_at};
use super::parsed_time::ParsedTime;
use jiff::civil::Time;
use jiff::fmt::temporal::Pieces;
use jiff::{Timestamp, Zoned};
use normalizer::NormalizedText;

/// The earliest hour accepted with an evening phrase: `tonight 8:00` is rejected as ambiguous.
const MIN_EVENING_HOUR: i64 = 12;

pub(super) fn parse(context: Context<'_>, now: &Zoned) -> Result<Timestamp, Error> {
    if let Some(range) = iso_range(context.original) {
        return Err(Error::Range {
            range: range.to_owned(),
        });
    }
    if let Some(instant) = parse_iso(context.original, now)? {
        return Ok(instant);
    }
    let normalized = NormalizedText::of(context)?;
    // The strict grammar has already rejected an unchanged text.
    let text = normalized.text.trim();
    if normalized.evening.is_none() && (text.is_empty() || text == context.original) {
        return Err(Error::unrecognized(context.original, 0));
    }
    let normalized_context = Context {
        original_positions: &normalized.original_positions,
        ..context
    };
    let mut parsed = ParsedTime::parse(&normalized.text, normalized_context)?;
    if let Some((evening, position)) = normalized.evening {
        // The evening replaces a time that only a day implies.
        match parsed.time.filter(|_| parsed.has_time()) {
            None => parsed.time = Some(evening),
            Some(time) if time.hour < MIN_EVENING_HOUR => {
                return Err(Error::unrecognized(context.original, position));
            }
            Some(_) => {}
        }
    }
    instant::resolve(parsed, now)
}

/// The text, if it is two ISO 8601 times with a slash or two hyphens between them.
fn iso_range(text: &str) -> Option<&str> {
    let (from, to) = text.split_once('/').or_else(|| text.split_once("--"))?;
    (Pieces::parse(from).is_ok() && Pieces::parse(to).is_ok()).then_some(text)
}

/// Parses forms of ISO 8601 and RFC 9557 that the strict grammar lacks: a decimal comma, a zone in
/// brackets. `None` for other texts; an error if the zone does not have the offset at that time.
fn parse_iso(text: &str, now: &Zoned) -> Result<Option<Timestamp>, Error> {
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
        (None, Some(zone)) => offset_at(zone, local, RepeatedTime::Earlier)?,
        (None, None) => offset_at(now.time_zone(), local, RepeatedTime::AsInPhp)?,
    };
    let instant = offset.to_timestamp(local).map_err(|_| Error::OutOfRange)?;
    let is_zulu = pieces
        .offset()
        .is_some_and(|offset| offset == jiff::fmt::temporal::PiecesOffset::Zulu);
    match zone.filter(|_| pieces.time_zone_annotation().is_some()) {
        Some(zone) if !is_zulu && zone.to_offset(instant) != offset => {
            let bracket = text.find('[').unwrap_or_default();
            Err(Error::Unrecognized {
                understood: text.get(..bracket).unwrap_or_default().to_owned(),
                rejected: text.get(bracket..).unwrap_or_default().to_owned(),
            })
        }
        _ => Timestamp::from_second(instant.as_second())
            .map(Some)
            .map_err(|_| Error::OutOfRange),
    }
}
