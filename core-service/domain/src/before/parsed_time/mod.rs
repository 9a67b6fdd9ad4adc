//! The date, time, time zone and relative offset that a text of the strict grammar names.

mod agreement;
mod named_days;
mod parser;
mod time_zone_token;

use super::context::Context;
use super::lexer::Token;
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

/// Whether the time of day is given, and whether a later one may replace it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TimeState {
    /// Not given, or midnight: from a day, a timestamp or the word `midnight`.
    #[default]
    Implied,
    /// Given before a word for a day, such as `today`. A later time may replace it.
    Replaceable,
    Given,
    /// Given, then followed by a year of four digits. Four further digits are an error.
    GivenWithYear,
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
    time_state: TimeState,
    has_date: bool,
    /// A day of the month is given, so it must exist in the calendar.
    has_day: bool,
    days: NamedDays,
    /// The number of time zone tokens. A second one is ignored, as in PHP.
    zone_count: u8,
    /// The previous token is a time of day, so that a UTC offset may follow.
    is_after_time: bool,
    /// `HH:MM` or `HHMM`: a hyphen and a number after it may mean a range.
    last_short_time: Option<Token<'a>>,
    /// The position of an `ago` after hours, minutes or seconds.
    clock_units_ago: Option<usize>,
}

impl ParsedTime<'_> {
    /// Whether the time of day is that of the present: `+2 hours`, `next week`.
    pub(super) fn counts_from_now(&self) -> bool {
        self.time.is_none() && self.year.is_none() && !self.has_date
    }

    /// Whether a time of day is given. Midnight does not count if its state is
    /// [`TimeState::Implied`].
    pub(super) fn has_time(&self) -> bool {
        self.time_state != TimeState::Implied
    }

    pub(super) fn has_date(&self) -> bool {
        self.has_date
    }

    pub(super) fn has_day(&self) -> bool {
        self.has_date && self.has_day
    }

    /// Whether the text contains a time zone token.
    pub(super) fn has_zone(&self) -> bool {
        self.zone_count > 0
    }

    /// Sets the time to midnight. A time already given stays, but a later one may replace it.
    fn default_to_midnight(&mut self) {
        if self.has_time() {
            self.time_state = TimeState::Replaceable;
        } else {
            self.time = Some(TimeOfDay::default());
        }
    }
}
