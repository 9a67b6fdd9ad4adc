//! Parses and formats a task's `timeSlot`, and converts local times to instants across clock
//! changes.

use std::cmp::Ordering;

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    fmt::temporal::Pieces,
    tz::{AmbiguousOffset, TimeZone},
};

use crate::task::TimeWindow;

/// Upper limit of a `timeSlot`, in bytes.
pub const MAX_BYTES: usize = 128;

/// Why a text is not a time slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a time slot has at most {MAX_BYTES} bytes, this one has {0}")]
    TooLong(usize),
    #[error(
        "{0:?} is not a time slot: write 2026-11-25 10:00-11:00, \
         or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z"
    )]
    Format(String),
    #[error("{0:?} is not a date: write a calendar date such as 2026-11-25")]
    Date(String),
    #[error("{0:?} is not a time of day: write 00:00 to 23:59, or 24:00 to end with the day")]
    Time(String),
    #[error("{0:?} is not an instant: write 2026-11-25T09:00:00Z")]
    Instant(String),
    #[error(
        "{0:?} ends before it starts; a window past midnight is written as two instants, \
         2026-11-25T22:00:00Z/2026-11-26T01:00:00Z"
    )]
    Reversed(String),
    #[error("{0:?} is empty: it must end after it starts")]
    Empty(String),
    #[error("{0:?} does not exist: the clocks of {1} skip it that day")]
    Skipped(String, String),
}

/// Parses `<YYYY-MM-DD> <HH:MM>-<HH:MM>` in the time zone, or an ISO 8601 interval
/// `<start>/<end>` with both instants in the time zone unless they have an offset.
///
/// Across a clock change, a repeated local time means its first occurrence, and a skipped local
/// time means the instant of the change. So windows adjacent in local time are adjacent in time
/// and do not overlap; a window inside the skipped hour is an error.
pub fn parse(text: &str, zone: &TimeZone) -> Result<TimeWindow, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLong(text.len()));
    }
    let text = text.trim();
    match text.split_once('/') {
        // The IRI of a resource, for example.
        Some((start, end)) if Pieces::parse(start).is_err() && Pieces::parse(end).is_err() => {
            Err(Error::Format(text.to_owned()))
        }
        Some((start, end)) => {
            let window = TimeWindow {
                after: whole_seconds(instant(start, zone)?),
                before: whole_seconds(instant(end, zone)?),
            };
            check_order(&window.after, &window.before, text)?;
            Ok(window)
        }
        None => date_and_range(text, zone),
    }
}

/// Drops fractions of a second: not every database stores them.
fn whole_seconds(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

/// Formats a window so that [`parse`] reads it back: the short form if it is unambiguous,
/// otherwise two instants with offsets.
pub(super) fn text(window: TimeWindow, zone: &TimeZone) -> String {
    let start = window.after.to_zoned(zone.clone());
    let end = window.before.to_zoned(zone.clone());
    let last = if end.time() == Time::midnight() {
        "24:00".to_owned()
    } else {
        end.strftime("%H:%M").to_string()
    };
    let short = format!("{}-{last}", start.strftime("%Y-%m-%d %H:%M"));
    if parse(&short, zone) == Ok(window) {
        return short;
    }
    format!(
        "{}/{}",
        start.strftime("%Y-%m-%dT%H:%M:%S%:z"),
        end.strftime("%Y-%m-%dT%H:%M:%S%:z")
    )
}

/// The first instant with this local time; for a skipped local time, the instant of the change.
pub(super) fn first_instant(local: DateTime, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local)
        }
        AmbiguousOffset::Gap { before, .. } => {
            let past_change = before.to_timestamp(local)?;
            // `preceding` excludes its argument, which may be the change itself.
            let from = past_change.checked_add(jiff::SignedDuration::from_nanos(1))?;
            Ok(zone
                .preceding(from)
                .next()
                .map_or(past_change, |change| change.timestamp()))
        }
    }
}

fn date_and_range(text: &str, zone: &TimeZone) -> Result<TimeWindow, Error> {
    let format_error = || Error::Format(text.to_owned());
    let (date, range) = text.split_once(' ').ok_or_else(format_error)?;
    let (start, end) = range.split_once('-').ok_or_else(format_error)?;
    if !matches_pattern(date, "0000-00-00")
        || !matches_pattern(start, "00:00")
        || !matches_pattern(end, "00:00")
    {
        return Err(format_error());
    }

    let date: Date = date.parse().map_err(|_| Error::Date(date.to_owned()))?;
    let start = date.to_datetime(time_of_day(start)?);
    let end = if end == "24:00" {
        date.tomorrow()
            .map_err(|_| Error::Date(date.to_string()))?
            .to_datetime(Time::midnight())
    } else {
        date.to_datetime(time_of_day(end)?)
    };
    check_order(&start, &end, text)?;

    let out_of_range = |_| Error::Date(date.to_string());
    let after = first_instant(start, zone).map_err(out_of_range)?;
    let before = first_instant(end, zone).map_err(out_of_range)?;
    if after >= before {
        let zone = zone.iana_name().unwrap_or("the time zone").to_owned();
        return Err(Error::Skipped(text.to_owned(), zone));
    }
    Ok(TimeWindow { after, before })
}

/// Fails unless a window starts before it ends.
fn check_order<T: Ord>(start: &T, end: &T, text: &str) -> Result<(), Error> {
    match start.cmp(end) {
        Ordering::Less => Ok(()),
        Ordering::Equal => Err(Error::Empty(text.to_owned())),
        Ordering::Greater => Err(Error::Reversed(text.to_owned())),
    }
}

/// Whether a text has a digit for each `0` of the pattern and equals it elsewhere.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, expected)| {
            if expected == b'0' {
                byte.is_ascii_digit()
            } else {
                byte == expected
            }
        })
}

fn time_of_day(text: &str) -> Result<Time, Error> {
    text.parse().map_err(|_| Error::Time(text.to_owned()))
}

fn instant(text: &str, zone: &TimeZone) -> Result<Timestamp, Error> {
    let error = || Error::Instant(text.to_owned());
    let pieces = Pieces::parse(text).map_err(|_| error())?;
    // Zone names are rejected: the slash in most of them separates start and end here.
    if pieces.time_zone_annotation().is_some() {
        return Err(error());
    }
    let local = pieces.date().to_datetime(pieces.time().ok_or_else(error)?);
    match pieces.to_numeric_offset() {
        Some(offset) => offset.to_timestamp(local),
        None => first_instant(local, zone),
    }
    .map_err(|_| error())
}

#[cfg(test)]
mod tests;
