//! Natural language in five languages, translated into the strict grammar by tables of phrases.
//! Tried only if the strict grammar rejects a text.

mod ambiguous_hours;
mod dictionary;
pub(super) mod duration;
mod names;
mod normalizer;
mod phrases;
mod ranges;
mod several_meanings;
pub(super) mod words;

use super::context::Context;
use super::error::Error;
use super::instant;
use super::instant::{RepeatedTime, offset_at};
use super::parsed_time::ParsedTime;
use super::time_zone::UTC_OFFSETS;
use jiff::civil::Time;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::{Timestamp, Zoned};
use normalizer::NormalizedText;
use ranges::iso_range;
pub(super) use ranges::{as_range, is_to};

pub(super) fn parse(context: Context<'_>, now: &Zoned) -> Result<Timestamp, Error> {
    if let Some(range) = iso_range(context.original) {
        return Err(Error::Range {
            range: range.to_owned(),
        });
    }
    if let Some(instant) = parse_iso(context.original, now)? {
        return Ok(instant);
    }
    if let Some(error) = duration::ambiguity_error(context.original) {
        return Err(error);
    }
    let normalized = NormalizedText::of(context)?;
    let text = normalized.text.trim();
    match &normalized.part_of_day {
        Some(part) if text.is_empty() => return Err(part.error()),
        // The strict grammar has already rejected an unchanged text.
        None if text.is_empty() || text == context.original => {
            return Err(context.unrecognized(0));
        }
        _ => {}
    }
    let normalized_context = Context {
        original_positions: &normalized.original_positions,
        is_from_now: normalized.from_now.is_some(),
        has_hour_alone: normalized.has_hour_alone,
        ..context
    };
    let mut parsed = ParsedTime::parse(&normalized.text, normalized_context)?;
    // `today in 2 hours` is not two hours after midnight.
    if let Some(position) = normalized.from_now
        && parsed.relative.has_clock_units()
        && !parsed.counts_from_now()
    {
        return Err(context.unrecognized(position));
    }
    if let Some(part) = normalized.part_of_day {
        // The default replaces a time that only a day implies.
        match (parsed.time.filter(|_| parsed.has_time()), part.default) {
            (None, Some(default)) => parsed.time = Some(default),
            (Some(time), _) if part.hours.contains(&time.hour) => {}
            _ => return Err(part.error()),
        }
    }
    instant::resolve(parsed, now)
}

/// Parses forms of ISO 8601 and RFC 9557 that the strict grammar lacks: a decimal comma, a time
/// zone in brackets. `None` for other texts; an error if the time zone has another offset then.
fn parse_iso(text: &str, now: &Zoned) -> Result<Option<Timestamp>, Error> {
    let Ok(pieces) = Pieces::parse(text) else {
        return Ok(None);
    };
    let Ok(time_zone) = pieces.to_time_zone() else {
        return Ok(None);
    };
    // `2026-12-05 10-12`: rather hours than a time twelve hours west of UTC.
    if let Some((_, hours)) = text.split_once(' ')
        && hours.len() == "10-12".len()
        && hours.contains('-')
    {
        return Err(Error::Range {
            range: hours.to_owned(),
        });
    }
    let local = pieces
        .date()
        .to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let offset = match (pieces.to_numeric_offset(), &time_zone) {
        (Some(offset), _) if !UTC_OFFSETS.contains(&offset.seconds().into()) => {
            return Err(Error::NoSuchOffset {
                offset: offset.to_string(),
            });
        }
        (Some(offset), _) => offset,
        (None, Some(time_zone)) => offset_at(time_zone, local, RepeatedTime::Earlier)?,
        (None, None) => offset_at(now.time_zone(), local, RepeatedTime::AsInPhp)?,
    };
    let instant = offset.to_timestamp(local)?;
    let is_zulu = pieces.offset() == Some(PiecesOffset::Zulu);
    match time_zone.filter(|_| pieces.time_zone_annotation().is_some()) {
        Some(time_zone) if !is_zulu && time_zone.to_offset(instant) != offset => {
            let bracket = text.find('[').unwrap_or_default();
            Err(Error::Unrecognized {
                understood: text.get(..bracket).unwrap_or_default().to_owned(),
                rejected: text.get(bracket..).unwrap_or_default().to_owned(),
            })
        }
        _ => Ok(Some(Timestamp::from_second(instant.as_second())?)),
    }
}
