//! From what a text says to an instant: the special days of a month first, then the weekday, the
//! distances, the working days, and the zone last.

use super::error::Error;
use super::reading::{Clock, Reading};
use super::relative::{Boundary, Relative, Special, WeekdaySearch};
use super::zone::Zone;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Span, Timestamp, Zoned};

const SECONDS_OF_DAY: i64 = 86_400;

/// The days of 400 years.
const DAYS_OF_CYCLE: i64 = 146_097;

/// The instant that a reading means, in whole seconds.
pub(super) fn resolve(mut reading: Reading, now: &Zoned) -> Result<Timestamp, Error> {
    let (year, month, day) = date_said(&reading, now)?;
    let clock = clock_said(&reading, now);
    let (days, seconds) = clock.split();
    let relative = &mut reading.relative;

    let (month, day) = start_in_month(relative, month, day);
    let date = civil(year, month, day + days)?;
    let date = add_days(date, days_to_weekday(relative, date))?;

    let (days, seconds) = split_days(seconds + relative.seconds_after(clock.microsecond));
    let date = go_the_distance(relative, date, days)?;
    let date = match relative.special {
        Some(Special::Workdays(count)) => add_days(date, days_of_workdays(count, date))?,
        _ => date,
    };

    let local = at_second(date, seconds)?;
    let offset = match &reading.zone {
        Some(Zone::Fixed(seconds)) => {
            let utc = Offset::UTC
                .to_timestamp(local)
                .map_err(|_| Error::OutOfRange)?;
            return Timestamp::from_second(utc.as_second() - seconds)
                .map_err(|_| Error::OutOfRange);
        }
        Some(Zone::Named(zone)) => offset_at(zone, local, reading.has_zone())?,
        None => offset_at(now.time_zone(), local, false)?,
    };
    offset.to_timestamp(local).map_err(|_| Error::OutOfRange)
}

/// The offset of a local time. One that the clocks skip moves forward with them. Of two that they
/// repeat the earlier is meant if the text names the zone; otherwise, as PHP has it, the later one
/// east of Greenwich and the earlier one west of it.
pub(super) fn offset_at(zone: &TimeZone, local: DateTime, is_named: bool) -> Result<Offset, Error> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => Ok(offset),
        AmbiguousOffset::Gap { before, .. } => Ok(before),
        AmbiguousOffset::Fold { before, .. } if is_named => Ok(before),
        AmbiguousOffset::Fold { .. } => {
            let as_if_utc = Offset::UTC
                .to_timestamp(local)
                .map_err(|_| Error::OutOfRange)?;
            Ok(zone.to_offset(as_if_utc))
        }
    }
}

fn date_said(reading: &Reading, now: &Zoned) -> Result<(i64, i64, i64), Error> {
    let year = reading.year.unwrap_or_else(|| now.year().into());
    let month = reading.month.unwrap_or_else(|| now.month().into());
    let day = reading.day.unwrap_or_else(|| now.day().into());
    if reading.names_day()
        && (!(1..=12).contains(&month)
            || !(1..=civil(year, month, 1)?.days_in_month().into()).contains(&day))
    {
        return Err(Error::NoSuchDate { year, month, day });
    }
    Ok((year, month, day))
}

fn clock_said(reading: &Reading, now: &Zoned) -> Clock {
    let present = || Clock {
        hour: now.hour().into(),
        minute: now.minute().into(),
        second: now.second().into(),
        microsecond: 0,
    };
    match reading.clock {
        Some(clock) => clock,
        None if reading.has_date() => Clock::default(),
        None => present(),
    }
}

impl Clock {
    /// Whole days, and the second of the day.
    fn split(self) -> (i64, i64) {
        split_days(self.hour * 3600 + self.minute * 60 + self.second)
    }
}

impl Relative {
    /// The distance on the clock in seconds, after so many microseconds of one.
    fn seconds_after(&self, microsecond: i64) -> i64 {
        let microseconds = microsecond + self.microseconds;
        self.hours * 3600 + self.minutes * 60 + self.seconds + microseconds.div_euclid(1_000_000)
    }
}

fn split_days(seconds: i64) -> (i64, i64) {
    (
        seconds.div_euclid(SECONDS_OF_DAY),
        seconds.rem_euclid(SECONDS_OF_DAY),
    )
}

/// Goes to the beginning or the end of the month that is counted from.
fn start_in_month(relative: &mut Relative, month: i64, day: i64) -> (i64, i64) {
    let (month, day) = match relative.special {
        Some(Special::FromStartOfMonth) => (month + std::mem::take(&mut relative.months), 1),
        Some(Special::FromEndOfMonth) => (month + std::mem::take(&mut relative.months) + 1, 1),
        Some(Special::Workdays(_)) | None => (month, day),
    };
    to_boundary(relative, month, day)
}

fn to_boundary(relative: &Relative, month: i64, day: i64) -> (i64, i64) {
    match relative.boundary {
        Some(Boundary::FirstDay) => (month, 1),
        Some(Boundary::LastDay) => (month + 1, 0),
        None => (month, day),
    }
}

fn days_to_weekday(relative: &Relative, date: Date) -> i64 {
    let Some(weekday) = relative.weekday else {
        return 0;
    };
    let today = i64::from(date.weekday().to_sunday_zero_offset());
    if relative.weekday_search == WeekdaySearch::SameWeek {
        // The week begins on Monday: Sunday is its seventh day.
        return match (weekday, today) {
            (0, 0) => 0,
            (0, _) => 7 - today,
            (_, 0) => weekday - 7,
            _ => weekday - today,
        };
    }
    if weekday < 0 {
        return weekday.abs() - today - 7;
    }
    let difference = weekday - today;
    let passed = match relative.weekday_search {
        WeekdaySearch::After if relative.days >= 0 => difference <= 0,
        _ => difference < 0,
    };
    if passed { difference + 7 } else { difference }
}

/// Months and years first, then days: 31 January and a month is 3 March.
fn go_the_distance(relative: &Relative, date: Date, days: i64) -> Result<Date, Error> {
    let month = i64::from(date.month()) + relative.months;
    let day = i64::from(date.day()) + relative.days;
    let (month, day) = to_boundary(relative, month, day);
    civil(i64::from(date.year()) + relative.years, month, day + days)
}

/// The days that so many working days take, Monday to Friday.
fn days_of_workdays(count: i64, date: Date) -> i64 {
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    let (weeks, rest) = (count / 5 * 7, count % 5);
    let over_weekend = match weekday {
        0 if count > 0 && rest == 0 => -2,
        0 if count <= 0 && rest == 0 => 1,
        0 if count <= 0 => -1,
        6 if count > 0 && rest == 0 => -1,
        6 if count > 0 => 1,
        6 if rest == 0 => 2,
        _ if rest > 0 && weekday + rest > 5 => 2,
        _ if rest < 0 && weekday + rest < 1 => -2,
        _ => 0,
    };
    weeks + over_weekend + rest
}

/// A date whose month and day may run over into other years and months, however far. Counting
/// starts in the year of the calendar's 400-year cycle that 2000 begins.
fn civil(year: i64, month: i64, day: i64) -> Result<Date, Error> {
    let months = year * 12 + month - 1;
    let (cycles, month_of_cycle) = (months.div_euclid(4800), months.rem_euclid(4800));
    let year = i16::try_from(2000 + month_of_cycle / 12).map_err(|_| Error::OutOfRange)?;
    let month = i8::try_from(month_of_cycle % 12 + 1).map_err(|_| Error::OutOfRange)?;
    let first = Date::new(year, month, 1).map_err(|_| Error::OutOfRange)?;
    add_days(first, (cycles - 5) * DAYS_OF_CYCLE + day - 1)
}

fn add_days(date: Date, days: i64) -> Result<Date, Error> {
    let span = Span::new().try_days(days).map_err(|_| Error::OutOfRange)?;
    date.checked_add(span).map_err(|_| Error::OutOfRange)
}

fn at_second(date: Date, second: i64) -> Result<DateTime, Error> {
    let span = Span::new()
        .try_seconds(second)
        .map_err(|_| Error::OutOfRange)?;
    date.at(0, 0, 0, 0)
        .checked_add(span)
        .map_err(|_| Error::OutOfRange)
}
