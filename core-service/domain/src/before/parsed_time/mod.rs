//! The date, time, time zone and relative offset that a text of the strict grammar names.

mod agreement;
mod parser;
mod time_zone_token;
mod undecided;

use super::context::Context;
use super::error::Error;
use super::grammar::TokenKind;
use super::lexer::Token;
use super::natural_language::duration;
use super::numbers::Readings;
use super::relative::RelativeOffset;
use super::time_zone::TimeZoneDesignator;

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

    /// Rejects a token after a word such as `bis` that has a day or a time of day before it.
    fn check_range(&self, token: &Token<'_>) -> Result<(), Error> {
        let undecided = self.undecided.as_ref().map(|readings| readings.token.start);
        let others = self.days_at().chain(self.time_at).chain(undecided);
        let before = others.filter(|other| *other < token.start).max();
        if before.is_some_and(|before| self.context.is_range(before, token.start)) {
            return Err(self.context.whole_range());
        }
        Ok(())
    }

    /// The positions of the days. A week is none: `nächste Woche bis Freitag` is one day.
    fn days_at(&self) -> impl Iterator<Item = usize> {
        let days = &self.days;
        let days = [
            self.date_at,
            days.word.map(|(_, start)| start),
            days.weekday.map(|(_, start)| start),
            days.counted_weekday,
        ];
        days.into_iter().flatten()
    }

    /// Rejects hours with a minus sign that may be a time of day: `15h -18 h`, `friday -18h`. They are
    /// a duration directly after a time with minutes that is not earlier: `18:00 -2h`.
    fn check_minus_hours(&self) -> Result<(), Error> {
        let Some(start) = self.days.minus_hours else {
            return Ok(());
        };
        let text = self.context.text_from(start).trim_start_matches('-');
        let Some((hour, minutes, length)) = duration::hour_of_day(text) else {
            return Ok(());
        };
        let (Some(time_at), Some(time)) = (self.time_at, self.time) else {
            if self.counts_from_now() {
                return Ok(());
            }
            let duration = match minutes {
                "" => format!("-{hour} hours"),
                _ => format!("-{hour} hours -{minutes} minutes"),
            };
            let time = format!("{hour:0>2}:{minutes:0>2}");
            return Err(duration::time_or_duration(&text[..length], time, duration));
        };
        let from = self.context.text_from(time_at);
        // `9pm` is the hour 9 of a range.
        let first = from.split(|char: char| !char.is_ascii_digit()).next();
        let first = first
            .and_then(|hour| hour.parse().ok())
            .map_or(time.hour, |hour| time.hour.min(hour));
        let end = [hour, minutes].map(|number| number.parse().unwrap_or_default());
        let is_after_day = self.days_at().any(|day| time_at < day && day < start);
        let is_end = is_after_day || self.context.has_hour_alone || end > [first, time.minute];
        if time_at < start && is_end {
            let range = from.get(..from.len() - text.len() + length);
            let range = range.unwrap_or(from).to_owned();
            return Err(Error::Range { range });
        }
        Ok(())
    }
}

/// The days and durations that a text names in addition to a date. A `usize` is the position of a
/// token.
#[derive(Debug, Default)]
struct NamedDays {
    /// The day word: `yesterday`, `today` or `tomorrow`. Its days from today, and its position.
    word: Option<(i64, usize)>,
    /// A weekday without `next`, `last` or an amount: its number, 0 for Sunday, and its position.
    weekday: Option<(i64, usize)>,
    /// `next monday`, `2 mondays`, `first monday of`.
    counted_weekday: Option<usize>,
    /// A day that is not compared with a weekday or a day word: a Unix time, `last day of`.
    never_compared: Option<usize>,
    /// A day that is not compared with a day word, but with a weekday: a week.
    not_compared_with_day_word: Option<usize>,
    /// The days from 1 January to an ISO week or a day of it.
    iso_days: Option<i64>,
    has_day_of_year: bool,
    /// The name of a month without a day or a year.
    month: Option<usize>,
    /// An amount of years, months, weeks, working days or days, or `next month`.
    calendar_units: Option<usize>,
    /// Hours, minutes or seconds without a sign.
    unsigned_clock_units: Option<usize>,
    /// An amount of years, months, weeks, working days or days, without a sign.
    unsigned_calendar_units: Option<usize>,
    /// Hours with a minus sign.
    minus_hours: Option<usize>,
    /// The previous token is an amount with a sign, which applies to the next one too.
    is_after_signed_amount: bool,
}

impl NamedDays {
    /// Ends the effect of a signed amount at a token that is not another amount.
    fn end_signed_amount(&mut self, kind: TokenKind) {
        self.is_after_signed_amount &= kind == TokenKind::Amount;
    }

    fn has_weekday(&self) -> bool {
        self.weekday.is_some() || self.counted_weekday.is_some()
    }
}
