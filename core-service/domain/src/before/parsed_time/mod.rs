//! The date, time, time zone and relative offset that a text of the strict grammar names.

mod agreement;
mod named_days;
mod parser;
mod ranges;
mod time_zone_token;
mod undecided;

use super::context::Context;
use super::lexer::Token;
use super::numbers::Readings;
use super::relative::RelativeOffset;
use super::time_zone::TimeZoneDesignator;
use named_days::NamedDays;

/// A time of day. Fields may overflow: 24:00 is the next day, second 60 the next minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeOfDay {
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) microsecond: i64,
}

impl TimeOfDay {
    pub(super) fn at(hour: i64, minute: i64) -> Self {
        Self {
            hour,
            minute,
            ..Self::default()
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ParsedTime<'a> {
    context: Context<'a>,
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) time: Option<TimeOfDay>,
    pub(super) zone: Option<TimeZoneDesignator>,
    pub(super) relative: RelativeOffset,
    /// The position of the time of day, unless a day implies it.
    time_at: Option<usize>,
    /// The position of a year of four digits with a space before it, which may be a time.
    bare_year: Option<usize>,
    /// The position of the date.
    date_at: Option<usize>,
    /// A day of the month is given, so it must exist in the calendar.
    has_day: bool,
    days: NamedDays,
    /// Numbers that the rest of the text decides between readings of.
    undecided: Option<Readings<'a>>,
    /// The number of time zone tokens.
    zone_count: u8,
    /// The previous token is a time of day, so that a UTC offset may follow.
    is_after_time: bool,
    /// `HH:MM`, `HHMM` or `9am`: a hyphen and a number after it may mean a range.
    last_short_time: Option<Token<'a>>,
    /// The position of an `ago` after hours, minutes or seconds.
    clock_units_ago: Option<usize>,
}

impl ParsedTime<'_> {
    /// Whether the time of day is that of the present: `+2 hours`, `next week`.
    pub(super) fn counts_from_now(&self) -> bool {
        self.time.is_none() && self.year.is_none() && !self.has_date()
    }

    pub(super) fn has_time(&self) -> bool {
        self.time_at.is_some()
    }

    pub(super) fn has_date(&self) -> bool {
        self.date_at.is_some()
    }

    pub(super) fn has_day(&self) -> bool {
        self.has_date() && self.has_day
    }

    /// Whether the text contains a time zone token.
    pub(super) fn has_zone(&self) -> bool {
        self.zone_count > 0
    }

    /// Sets the time to midnight unless one is given.
    fn default_to_midnight(&mut self) {
        self.time.get_or_insert_default();
    }
}
