//! Arithmetic of the calendar, and the local times that a clock change skips or repeats.

use super::error::Error;
use jiff::Span;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// A date whose month and day may be out of range by any amount.
pub(super) fn date_of(year: i64, month: i64, day: i64) -> Result<Date, Error> {
    let months = year * 12 + month - 1;
    let year = i16::try_from(months.div_euclid(12)).map_err(|_| Error::OutOfRange)?;
    let month = i8::try_from(months.rem_euclid(12) + 1).map_err(|_| Error::OutOfRange)?;
    add_days(Date::new(year, month, 1)?, day - 1)
}

pub(super) fn add_days(date: Date, days: i64) -> Result<Date, Error> {
    if days == 0 {
        return Ok(date);
    }
    Ok(date.checked_add(Span::new().try_days(days)?)?)
}

/// The calendar days spanned by a number of working days, Monday to Friday: whole weeks, the rest,
/// and a correction for weekends. Weekday 0 is Sunday, 6 is Saturday.
pub(super) fn calendar_days(working_days: i64, date: Date) -> i64 {
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    let (weeks, rest) = (working_days / 5 * 7, working_days % 5);
    let weekend_days = match weekday {
        0 if working_days > 0 && rest == 0 => -2,
        0 if working_days <= 0 && rest == 0 => 1,
        0 if working_days <= 0 => -1,
        6 if working_days > 0 && rest == 0 => -1,
        6 if working_days > 0 => 1,
        6 if rest == 0 => 2,
        _ if rest > 0 && weekday + rest > 5 => 2,
        _ if rest < 0 && weekday + rest < 1 => -2,
        _ => 0,
    };
    weeks + weekend_days + rest
}

/// Which instant is meant by a local time that a clock change repeats.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatedTime {
    /// The earlier one, because a token of the text names the time zone.
    Earlier,
    /// The one that PHP takes: the later one east of Greenwich, the earlier one west of it.
    AsInPhp,
}

/// The UTC offset of a local time. A time skipped by a clock change moves forward.
pub(super) fn offset_at(
    time_zone: &TimeZone,
    local: DateTime,
    repeated_time: RepeatedTime,
) -> Result<Offset, Error> {
    match time_zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => Ok(offset),
        AmbiguousOffset::Gap { before, .. } => Ok(before),
        AmbiguousOffset::Fold { before, .. } if repeated_time == RepeatedTime::Earlier => {
            Ok(before)
        }
        AmbiguousOffset::Fold { .. } => Ok(time_zone.to_offset(Offset::UTC.to_timestamp(local)?)),
    }
}
