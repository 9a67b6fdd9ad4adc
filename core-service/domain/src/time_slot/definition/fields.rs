//! Parsers of single fields. An error says what would be valid.

use std::ops::RangeInclusive;

use jiff::civil::{Date, Time};

use crate::{time_slot::CalendarDuration, visible::is_control};

const MAX_NAME: usize = 100;
const MAX_CAPACITY: u32 = 1_000_000;
const MAX_QUOTED: usize = 40;
const MIN_INTERVAL: &str = "1 minute";
const MAX_INTERVAL: &str = "3 months";
const MIN_SLOT_LENGTH: &str = "5 minutes";
const MAX_SLOT_LENGTH: &str = "1 day";

pub(super) fn name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if !(1..=MAX_NAME).contains(&name.chars().count()) || name.contains(is_control) {
        return Err(format!(
            "a name is one line of 1 to {MAX_NAME} characters, without controls"
        ));
    }
    Ok(name.to_owned())
}

pub(super) fn duration(text: &str) -> Result<CalendarDuration, String> {
    CalendarDuration::parse(text).ok_or_else(|| {
        format!(
            "{} is not a duration: write a whole number and a unit, \
             \"36 hours\", \"2 days\", \"1 month\"",
            quoted(text)
        )
    })
}

pub(super) fn interval(text: &str) -> Result<CalendarDuration, String> {
    duration_within(text, MIN_INTERVAL, MAX_INTERVAL)
}

/// The length of a slot in minutes.
pub(super) fn slot_length(text: &str) -> Result<i64, String> {
    duration_within(text, MIN_SLOT_LENGTH, MAX_SLOT_LENGTH).map(CalendarDuration::minutes)
}

fn duration_within(text: &str, min: &str, max: &str) -> Result<CalendarDuration, String> {
    let minutes = |limit| CalendarDuration::parse(limit).map(CalendarDuration::minutes);
    let duration = duration(text)?;
    if Some(duration.minutes()) < minutes(min) {
        return Err(format!("{duration} is too short: at least {min}"));
    }
    if Some(duration.minutes()) > minutes(max) {
        return Err(format!("{duration} is too long: at most {max}"));
    }
    Ok(duration)
}

pub(super) fn time_of_day(text: &str) -> Result<Time, String> {
    Time::strptime("%H:%M", text)
        .ok()
        .filter(|_| text.len() == "00:00".len())
        .ok_or_else(|| format!("{} is not a time of day: write \"11:00\"", quoted(text)))
}

pub(super) fn capacity(number: i64) -> Result<u32, String> {
    u32::try_from(number)
        .ok()
        .filter(|capacity| (1..=MAX_CAPACITY).contains(capacity))
        .ok_or_else(|| format!("write a whole number from 1 to {MAX_CAPACITY}"))
}

/// A date, or a first and a last date separated by `/`.
pub(super) fn dates(text: &str) -> Result<RangeInclusive<Date>, &'static str> {
    let (first, last) = text.split_once('/').unwrap_or((text, text));
    match date(first).zip(date(last)) {
        Some((first, last)) if first > last => Err("the last date is before the first"),
        Some((first, last)) => Ok(first..=last),
        None => Err(
            "write a date, \"2026-12-24\", or a first and a last one, \"2026-12-24/2026-12-28\"",
        ),
    }
}

fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    // Longer texts are dates with a time, shorter ones other forms of ISO 8601.
    text.parse()
        .ok()
        .filter(|_| text.len() == "2026-12-24".len())
}

/// Quotes and truncates a text for a message.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}
