//! Parses a text of the strict grammar token by token.

use super::super::context::Context;
use super::super::error::{Error, noon_or_midnight};
use super::super::grammar::{Field, TokenKind};
use super::super::lexer::{self, Cursor, Token};
use super::super::numbers::Readings;
use super::super::time_zone::TimeZoneDesignator;
use super::super::word_tables;
use super::{ParsedTime, TimeOfDay};

impl<'a> ParsedTime<'a> {
    /// Parses a whole text of the strict grammar.
    pub(in crate::before) fn parse(text: &'a str, context: Context<'a>) -> Result<Self, Error> {
        if let Some(position) = text.find('\0') {
            return Err(context.unrecognized(position));
        }
        let mut parsed = Self {
            context,
            ..Self::default()
        };
        let mut start = 0;
        let mut zone_start = None;
        let mut is_empty = true;
        while start < text.len() {
            let token =
                lexer::token_at(text, start).ok_or_else(|| parsed.without_token(text, start))?;
            parsed.apply(&token)?;
            start = token.end();
            // `5 dec 20261205`: the token is only the beginning of a number.
            if token.text.ends_with(|char: char| char.is_ascii_digit())
                && token.is_before(b"0123456789")
            {
                return Err(context.unrecognized(start - 1));
            }
            match token.kind {
                TokenKind::Separator => continue,
                TokenKind::TimeZone => zone_start = zone_start.or(Some(token.start)),
                _ => {}
            }
            is_empty = false;
            parsed.days.end_signed_amount(token.kind);
            parsed.is_after_time = match token.kind {
                TokenKind::Fields(fields) => fields.contains(&Field::Hour),
                TokenKind::Numbers => {
                    let time = parsed.last_short_time.as_ref();
                    time.is_some_and(|time| time.start == token.start)
                }
                // `10:00:00 2026 +0100`
                TokenKind::FourDigits => parsed.has_time(),
                _ => false,
            };
        }
        if is_empty {
            return Err(context.unrecognized(0));
        }
        parsed.decide_numbers(zone_start)?;
        // A time zone applies to a date or a time, not to `+2 hours`; and `today 2 hours ago` is not
        // two hours before midnight.
        let rejected = if parsed.counts_from_now() {
            zone_start
        } else {
            parsed.clock_units_ago
        };
        if let Some(start) = rejected {
            return Err(context.unrecognized(start));
        }
        parsed.check_year()?;
        // A day may follow the hours.
        parsed.check_minus_hours()?;
        parsed.check_durations()?;
        parsed.resolve_day()?;
        parsed.check_month()?;
        Ok(parsed)
    }

    fn apply(&mut self, token: &Token<'a>) -> Result<(), Error> {
        if token.kind.is_day() {
            self.check_range(token)?;
        }
        match token.kind {
            TokenKind::Separator | TokenKind::Now => {}
            TokenKind::Day(days) => self.set_day_word(days, token)?,
            TokenKind::Midnight => self.set_time(TimeOfDay::default(), token)?,
            TokenKind::Noon => self.set_time(TimeOfDay::at(12, 0), token)?,
            TokenKind::QuarterHour => self.set_quarter_hour(token)?,
            TokenKind::Timestamp => self.set_timestamp(token)?,
            TokenKind::Fields(fields) => self.set_fields(fields, token)?,
            TokenKind::Numbers => {
                let Context {
                    date_order, today, ..
                } = self.context;
                self.set_numbers(Readings::of(*token, date_order, today))?;
            }
            TokenKind::FourDigits => self.set_four_digits(token)?,
            TokenKind::Month => {
                self.mark_date(token)?;
                self.days.month = Some(token.start);
                self.month = word_tables::month(Cursor::new(token.text).word());
            }
            TokenKind::TimeZone => self.apply_zone(token)?,
            TokenKind::Ago => {
                if self.relative.has_clock_units() {
                    self.clock_units_ago = Some(token.start);
                } else if self.relative.days == 0
                    && self.days.calendar_units.is_none()
                    && !self.days.has_weekday()
                {
                    return Err(self.context.unrecognized(token.start));
                }
                self.apply_ago(token)?;
                self.relative.negate();
            }
            TokenKind::Amount if is_fraction(token) => {
                return Err(self.context.unrecognized(token.start));
            }
            TokenKind::Amount => {
                self.relative.add_amount(token).ok_or(Error::OutOfRange)?;
                self.record_amount(token)?;
                self.check_minus_hours()?;
            }
            TokenKind::CalendarWeek => {
                self.relative.set_calendar_week(token);
                self.days.not_compared_with_day_word = Some(token.start);
            }
            TokenKind::MonthBoundary => {
                self.relative.set_month_boundary(token);
                self.days.never_compared = Some(token.start);
            }
            TokenKind::Weekday => {
                self.relative.set_weekday(token);
                self.record_weekday(token)?;
                self.default_to_midnight();
            }
            TokenKind::WeekdayOfMonth => {
                self.record_counted_weekday(token)?;
                self.relative.set_weekday_of_month(token);
                self.default_to_midnight();
            }
            TokenKind::OrdinalUnit => {
                self.record_ordinal_unit(token)?;
                if self.relative.add_ordinal_unit(token) {
                    self.default_to_midnight();
                }
            }
        }
        Ok(())
    }

    /// Sets the time of day. A second one is an error.
    pub(super) fn set_time(&mut self, time: TimeOfDay, token: &Token<'_>) -> Result<(), Error> {
        if self.has_time() {
            return Err(self.context.duplicate("time", token.start));
        }
        self.time = Some(time);
        self.time_at = Some(token.start);
        Ok(())
    }

    /// Records that a date is given. A second one is an error.
    pub(super) fn mark_date(&mut self, token: &Token<'_>) -> Result<(), Error> {
        if let Some(start) = self.date_at {
            return Err(self.context.duplicate("date", token.start.max(start)));
        }
        self.date_at = Some(token.start);
        Ok(())
    }

    /// A quarter past (`back of`) or a quarter to (`front of`) an hour.
    fn set_quarter_hour(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let mut cursor = Cursor::new(token.text);
        let is_past = cursor.word().eq_ignore_ascii_case("back");
        let given = cursor.number(2).unwrap_or_default();
        let (hour, minute) = if is_past {
            (given, 15)
        } else {
            (given - 1, 45)
        };
        let hour = hour + cursor.meridiem_hours(hour);
        self.set_time(TimeOfDay::at(hour, minute), token)
    }

    /// Seconds since 1970 in UTC. Relative offsets still apply.
    fn set_timestamp(&mut self, token: &Token<'_>) -> Result<(), Error> {
        if self.has_zone() {
            return Err(self.context.duplicate("time zone", token.start));
        }
        let mut cursor = Cursor::new(token.text);
        let sign = cursor.sign();
        let seconds = cursor.number(usize::MAX).ok_or(Error::OutOfRange)?;
        if cursor.peek() == Some(b'.') {
            self.relative.microseconds = sign * cursor.microseconds();
        }
        self.relative.seconds += sign * seconds;
        self.mark_date(token)?;
        (self.year, self.month, self.day) = (Some(1970), Some(1), Some(1));
        self.days.never_compared = Some(token.start);
        self.set_time(TimeOfDay::default(), token)?;
        self.zone = Some(TimeZoneDesignator::Fixed(0));
        self.zone_count = 1;
        Ok(())
    }

    fn set_fields(&mut self, fields: &[Field], token: &Token<'a>) -> Result<(), Error> {
        if fields
            .iter()
            .any(|field| matches!(field, Field::Year | Field::MonthName))
        {
            self.mark_date(token)?;
        }
        // PHP ignores days before a week.
        if fields.contains(&Field::Week) && self.relative.days != 0 {
            return Err(self.context.duplicate("day", token.start));
        }
        let mut time = TimeOfDay::default();
        let mut has_second = false;
        let mut cursor = Cursor::new(token.text);
        for field in fields {
            match field {
                Field::Hour => time.hour = cursor.number(2).unwrap_or_default(),
                Field::Minute if cursor.is_before_number() => {
                    time.minute = cursor.number(2).unwrap_or_default();
                }
                Field::Second if cursor.is_before_number() => {
                    time.second = cursor.number(2).unwrap_or_default();
                    has_second = true;
                }
                Field::Minute | Field::Second => {}
                Field::Fraction => time.microsecond = cursor.microseconds(),
                Field::Meridiem => time.hour += cursor.meridiem_hours(time.hour),
                Field::TimeZone if cursor.remainder().is_empty() => {}
                Field::TimeZone => self.set_zone(cursor.remainder(), true, token)?,
                Field::Year => {
                    let (sign, width) = match token.text.bytes().next() {
                        Some(b'-') => (-1, usize::MAX),
                        Some(b'+') => (1, usize::MAX),
                        _ => (1, 4),
                    };
                    self.year = cursor.year(width).map(|year| sign * year);
                    // `5 dec 2030`, but not `5-dec-2030`.
                    let before = token.text.trim_end_matches(|c: char| c.is_ascii_digit());
                    if self.year.is_some() && before.ends_with([' ', '\t', ',']) {
                        self.bare_year = Some(token.end() - 4);
                    }
                }
                Field::Month => self.month = cursor.number(2),
                Field::MonthName => {
                    cursor.skip_ordinal_suffix();
                    self.month = word_tables::month(cursor.word());
                }
                Field::Day => {
                    self.day = cursor.number(2);
                    self.has_day = true;
                }
                Field::FirstOfMonth => self.day = Some(1),
                Field::DayOfYear => {
                    self.month = Some(1);
                    self.day = cursor.number(3);
                    self.days.has_day_of_year = true;
                }
                Field::Week => {
                    (self.month, self.day) = (Some(1), Some(1));
                    self.relative
                        .set_iso_week(self.year.unwrap_or_default(), cursor.number(2));
                }
                Field::DayOfWeek => self.relative.set_day_of_week(cursor.number(1)),
            }
        }
        if fields.contains(&Field::Hour) {
            let after = token.source_from("").trim_start();
            let is_before_date = after.starts_with(|char: char| char.is_ascii_digit());
            // German `12 am 5.12.`, as against `12 AM` and `12am`.
            if time.hour == 0 && token.text.trim_end().ends_with(" am") && is_before_date {
                let text = token.text.trim_end().to_owned();
                return Err(noon_or_midnight(text, &format!("{:02}", time.minute)));
            }
            self.set_time(time, token)?;
            if !has_second {
                self.last_short_time = Some(*token);
            }
        }
        if fields.contains(&Field::Week) {
            self.days.iso_days = Some(self.relative.days);
            self.days.not_compared_with_day_word = Some(token.start);
        }
        Ok(())
    }
}

/// Whether the amount is the fraction of a number, as in `.5 hours`.
fn is_fraction(amount: &Token<'_>) -> bool {
    let integer = amount.before().strip_suffix(['.', ',']);
    amount.text.starts_with(|char: char| char.is_ascii_digit())
        && integer.is_some_and(|integer| !integer.ends_with(char::is_alphabetic))
}
