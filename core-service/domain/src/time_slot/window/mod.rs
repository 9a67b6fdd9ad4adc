//! Parses and formats a task's `timeSlot`, and converts local times to instants across clock
//! changes.

use std::cmp::Ordering;

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    fmt::temporal::Pieces,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

use crate::{before::UTC_OFFSETS, task::TimeWindow, visible::visible};

/// Upper limit of a `timeSlot`, in bytes.
pub const MAX_BYTES: usize = 128;

/// Parses `<YYYY-MM-DD> <HH:MM>-<HH:MM>` in the time zone, or an ISO 8601 interval `<start>/<end>`:
/// an end without an offset has the start's, unless the time zone's own changes between them;
/// without any offset, both are in the time zone.
///
/// Across a clock change, a repeated local time means its first occurrence, and a skipped local
/// time means the instant of the change. So windows adjacent in local time are adjacent in time
/// and do not overlap; a window inside the skipped hour is an error.
pub fn parse(text: &str, zone: &TimeZone) -> Result<TimeWindow, String> {
    let text = &*visible(text);
    if text.len() > MAX_BYTES {
        let length = text.len();
        return Err(format!(
            "a time slot has at most {MAX_BYTES} bytes, this one has {length}"
        ));
    }
    let text = text.trim();
    match text.split_once('/') {
        // The IRI of a resource, for example.
        Some((start, end)) if Pieces::parse(start).is_err() && Pieces::parse(end).is_err() => {
            Err(format_error(text))
        }
        Some((start, end)) => {
            let (start, end) = (Point::parse(start)?, Point::parse(end)?);
            if start.offset.is_none() && end.offset.is_some() {
                return Err(format!(
                    "{text:?} has an offset at its end only: write it at the start too"
                ));
            }
            let after = start.instant(start.offset, zone)?;
            let before = end.instant(end.offset.or(start.offset), zone)?;
            if let (Some(offset), None) = (start.offset, end.offset)
                && zone.to_offset(after) == offset
                && zone.to_offset(before) != offset
            {
                return Err(format!(
                    "{text:?} ends after a clock change: write an offset at its end too"
                ));
            }
            match start.offset {
                Some(_) => check_order(&after, &before, text)?,
                None => check_order(&start.local, &end.local, text)?,
            }
            window(after, before, text, zone)
        }
        None => date_and_range(text, zone),
    }
}

/// The window between two instants whose local times are in order, without fractions of a second.
fn window(
    after: Timestamp,
    before: Timestamp,
    text: &str,
    zone: &TimeZone,
) -> Result<TimeWindow, String> {
    if after >= before {
        let zone = zone.iana_name().unwrap_or("the time zone");
        return Err(format!(
            "{text:?} does not exist: the clocks of {zone} skip it that day"
        ));
    }
    let window = TimeWindow {
        after: whole_seconds(after),
        before: whole_seconds(before),
    };
    if window.after == window.before {
        return Err(format!("{text:?} is shorter than a second"));
    }
    Ok(window)
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

fn date_and_range(text: &str, zone: &TimeZone) -> Result<TimeWindow, String> {
    let (date, range) = text.split_once(' ').ok_or_else(|| format_error(text))?;
    let (start, end) = range.split_once('-').ok_or_else(|| format_error(text))?;
    if !matches_pattern(date, "0000-00-00")
        || !matches_pattern(start, "00:00")
        || !matches_pattern(end, "00:00")
    {
        return Err(format_error(text));
    }

    let date_error = || format!("{date:?} is not a date: write a calendar date such as 2026-11-25");
    let date: Date = date.parse().map_err(|_| date_error())?;
    let start = date.to_datetime(time_of_day(start)?);
    let end = if end == "24:00" {
        date.tomorrow()
            .map_err(|_| date_error())?
            .to_datetime(Time::midnight())
    } else {
        date.to_datetime(time_of_day(end)?)
    };
    check_order(&start, &end, text)?;

    let after = first_instant(start, zone).map_err(|_| date_error())?;
    let before = first_instant(end, zone).map_err(|_| date_error())?;
    window(after, before, text, zone)
}

fn format_error(text: &str) -> String {
    if text.starts_with("/api/") {
        return format!(
            "{text:?} is not a time slot: send the value of one of the choices of \
             GET /api/time_slots/choices"
        );
    }
    format!(
        "{text:?} is not a time slot: write 2026-11-25 10:00-11:00, \
         or 2026-11-25T09:00:00Z/2026-11-25T10:00:00Z"
    )
}

/// Fails unless a window starts before it ends.
fn check_order<T: Ord>(start: &T, end: &T, text: &str) -> Result<(), String> {
    match start.cmp(end) {
        Ordering::Less => Ok(()),
        Ordering::Equal => Err(format!("{text:?} is empty: it must end after it starts")),
        Ordering::Greater => Err(format!(
            "{text:?} ends before it starts; a window past midnight is written as two instants, \
             2026-11-25T22:00:00Z/2026-11-26T01:00:00Z"
        )),
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

fn time_of_day(text: &str) -> Result<Time, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not a time of day: write 00:00 to 23:59, or 24:00 to end with the day")
    })
}

/// The start or the end of an interval.
struct Point<'a> {
    text: &'a str,
    local: DateTime,
    offset: Option<Offset>,
}

impl<'a> Point<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let pieces = Pieces::parse(text).map_err(|_| not_an_instant(text))?;
        // Zone names are rejected: the slash in most of them separates start and end here.
        let time = pieces
            .time()
            .filter(|_| pieces.time_zone_annotation().is_none())
            .ok_or_else(|| not_an_instant(text))?;
        let offset = pieces.to_numeric_offset();
        if let Some(offset) = offset.filter(|it| !UTC_OFFSETS.contains(&it.seconds().into())) {
            return Err(format!(
                "{text:?} has the UTC offset {offset}: they are from -12:00 to +14:00"
            ));
        }
        Ok(Self {
            text,
            local: pieces.date().to_datetime(time),
            offset,
        })
    }

    fn instant(&self, offset: Option<Offset>, zone: &TimeZone) -> Result<Timestamp, String> {
        match offset {
            Some(offset) => offset.to_timestamp(self.local),
            None => first_instant(self.local, zone),
        }
        .map_err(|_| not_an_instant(self.text))
    }
}

fn not_an_instant(text: &str) -> String {
    format!("{text:?} is not an instant: write 2026-11-25T09:00:00Z")
}

#[cfg(test)]
mod tests;
