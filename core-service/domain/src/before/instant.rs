//! Resolves a parsed time into an instant, in this order: month boundaries, weekday, relative
//! offsets, month boundaries of the new month, working days, time zone. Arithmetic of the calendar, and the
//! local times that a clock change skips or repeats.

use super::error::Error;
use super::parsed_time::{ParsedTime, TimeOfDay};
use super::relative::{DayCount, MonthBoundary, RelativeOffset, WeekdaySearch};
use super::time_zone::TimeZoneDesignator;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp, Zoned};

const SECONDS_PER_DAY: i64 = 86_400;

/// The instant that a parsed time means, in whole seconds. Hours, minutes and seconds are added to
/// a local time as in PHP; if they count from now, they are elapsed time, even across a clock
/// change.
pub(super) fn resolve(mut parsed: ParsedTime<'_>, now: &Zoned) -> Result<Timestamp, Error> {
    let (year, month, day) = base_date(&parsed, now)?;
    let time = base_time(&parsed, now);
    // With working days, hours are added to the local time, and before the days, as in PHP.
    let is_from_now = parsed.counts_from_now() && parsed.relative.day_count.is_none();
    let (days, seconds) = split_days(time.hour * 3600 + time.minute * 60 + time.second);
    let relative = &mut parsed.relative;

    let (month, day) = move_to_count_start(relative, month, day);
    let date = date_of(year, month, day)?;
    // 24:00 is at the end of the weekday; PHP counts the weekday from the day after.
    let date = add_days(date, days_to_weekday(relative, date) + days)?;

    let microseconds = time.microsecond + relative.microseconds;
    let duration = relative.hours * 3600
        + relative.minutes * 60
        + relative.seconds
        + microseconds.div_euclid(1_000_000);
    let (elapsed, added) = if is_from_now {
        (duration, 0)
    } else {
        (0, duration)
    };
    let (days, seconds) = split_days(seconds + added);
    let date = apply_offsets(relative, date, days)?;
    let date = match relative.day_count {
        Some(DayCount::WorkingDays(count)) => add_days(date, calendar_days(count, date))?,
        _ => date,
    };

    let time = Time::midnight().wrapping_add(SignedDuration::from_secs(seconds));
    let local = date.to_datetime(time);
    let offset = match &parsed.zone {
        Some(TimeZoneDesignator::Fixed(seconds)) => {
            let utc = Offset::UTC.to_timestamp(local)?;
            return Ok(Timestamp::from_second(utc.as_second() - seconds)?);
        }
        Some(TimeZoneDesignator::Named(zone)) if parsed.has_zone() => {
            offset_at(zone, local, RepeatedTime::Earlier)?
        }
        // Named within the token of a date: `oct 25 02:30:00 Europe/Paris`.
        Some(TimeZoneDesignator::Named(zone)) => offset_at(zone, local, RepeatedTime::AsInPhp)?,
        // The current time is never ambiguous.
        None if is_from_now && is_in_second(now, local) => now.offset(),
        None => offset_at(now.time_zone(), local, RepeatedTime::AsInPhp)?,
    };
    let start = offset.to_timestamp(local)?;
    Ok(Timestamp::from_second(start.as_second() + elapsed)?)
}

fn is_in_second(now: &Zoned, local: DateTime) -> bool {
    let time = |time: Time| (time.hour(), time.minute(), time.second());
    now.date() == local.date() && time(now.time()) == time(local.time())
}

fn base_date(parsed: &ParsedTime<'_>, now: &Zoned) -> Result<(i64, i64, i64), Error> {
    let year = parsed.year.unwrap_or_else(|| now.year().into());
    let month = parsed.month.unwrap_or_else(|| now.month().into());
    let day = parsed.day.unwrap_or_else(|| now.day().into());
    if parsed.has_day()
        && (!(1..=12).contains(&month)
            || !(1..=date_of(year, month, 1)?.days_in_month().into()).contains(&day))
    {
        return Err(Error::NoSuchDate { year, month, day });
    }
    Ok((year, month, day))
}

fn base_time(parsed: &ParsedTime<'_>, now: &Zoned) -> TimeOfDay {
    match parsed.time {
        Some(time) => time,
        None if parsed.has_date() => TimeOfDay::default(),
        None => TimeOfDay {
            hour: now.hour().into(),
            minute: now.minute().into(),
            second: now.second().into(),
            microsecond: 0,
        },
    }
}

/// Splits into whole days and the second of the day.
fn split_days(seconds: i64) -> (i64, i64) {
    (
        seconds.div_euclid(SECONDS_PER_DAY),
        seconds.rem_euclid(SECONDS_PER_DAY),
    )
}

/// Moves to the day from which weekdays of a month are counted, if they are: the first day of the
/// month, or of the next month to count back. Relative months are added before, because they select
/// the month. Then moves to the month boundary, if there is one.
fn move_to_count_start(relative: &mut RelativeOffset, month: i64, day: i64) -> (i64, i64) {
    let mut take_months = || month + std::mem::take(&mut relative.months);
    let (month, day) = match relative.day_count {
        Some(DayCount::WeekdaysFromMonthStart) => (take_months(), 1),
        Some(DayCount::WeekdaysFromMonthEnd) => (take_months() + 1, 1),
        Some(DayCount::WorkingDays(_)) | None => (month, day),
    };
    move_to_boundary(relative, month, day)
}

fn move_to_boundary(relative: &RelativeOffset, month: i64, day: i64) -> (i64, i64) {
    match relative.month_boundary {
        Some(MonthBoundary::FirstDay) => (month, 1),
        Some(MonthBoundary::LastDay) => (month + 1, 0),
        None => (month, day),
    }
}

fn days_to_weekday(relative: &RelativeOffset, date: Date) -> i64 {
    let Some(weekday) = relative.weekday else {
        return 0;
    };
    let today = i64::from(date.weekday().to_sunday_zero_offset());
    if relative.weekday_search == WeekdaySearch::SameWeek {
        // The week starts on Monday; Sunday is its seventh day.
        return match (weekday, today) {
            (0, 0) => 0,
            (0, _) => 7 - today,
            (_, 0) => weekday - 7,
            _ => weekday - today,
        };
    }
    // After `ago`: from -1, a Monday, to -7, a Sunday.
    if weekday < 0 {
        return weekday.abs() - today - 7;
    }
    let difference = weekday - today;
    let is_past = match relative.weekday_search {
        WeekdaySearch::After if relative.days >= 0 => difference <= 0,
        _ => difference < 0,
    };
    if is_past { difference + 7 } else { difference }
}

/// Applies years and months before days: 31 January plus a month is 2 or 3 March. A month boundary
/// applies again, to the new month: it replaces the day and the relative days, as in PHP.
fn apply_offsets(relative: &RelativeOffset, date: Date, days: i64) -> Result<Date, Error> {
    let month = i64::from(date.month()) + relative.months;
    let day = i64::from(date.day()) + relative.days;
    let (month, day) = move_to_boundary(relative, month, day);
    date_of(i64::from(date.year()) + relative.years, month, day + days)
}

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
