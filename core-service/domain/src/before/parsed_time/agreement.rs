//! Several days and durations in one text: parsed if they agree, rejected if they contradict each
//! other or may mean two times. PHP adds them up.

use super::super::error::Error;
use super::super::instant::date_of;
use super::super::lexer::{Cursor, Token};
use super::super::relative::WeekdaySearch;
use super::super::word_tables::{Unit, WEEKDAYS, WORKING_DAYS, value_of};
use super::ParsedTime;
use jiff::civil::Date;

impl ParsedTime<'_> {
    pub(super) fn record_weekday(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let weekday = self.relative.weekday;
        let is_other = |(given, _)| Some(given) != weekday;
        if self.days.counted_weekday.is_some() || self.days.weekday.is_some_and(is_other) {
            return Err(self.context.duplicate("day", token.start));
        }
        self.days.weekday = weekday.map(|weekday| (weekday, token.start));
        Ok(())
    }

    /// `next monday`, `2 mondays`, `first monday of`.
    pub(super) fn record_counted_weekday(&mut self, token: &Token<'_>) -> Result<(), Error> {
        if self.days.counted_weekday.is_some() || self.days.weekday.is_some() {
            return Err(self.context.duplicate("day", token.start));
        }
        self.days.counted_weekday = Some(token.start);
        Ok(())
    }

    /// `next month`, `third day`, `last friday`.
    pub(super) fn record_ordinal_unit(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let mut cursor = Cursor::new(token.text);
        cursor.word();
        match Unit::parse(cursor.remainder()) {
            // `tomorrow next day` is the day after tomorrow.
            Some(Unit::Day) => {}
            Some(unit) if unit.is_clock_unit() => {}
            None if value_of(cursor.remainder(), WORKING_DAYS).is_none() => {
                self.record_counted_weekday(token)?;
            }
            _ => self.days.calendar_units = Some(token.start),
        }
        Ok(())
    }

    /// `+2 hours`, `3 weekdays`, `2 mondays`.
    pub(super) fn record_amount(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let unit = token
            .text
            .trim_start_matches(|char: char| !char.is_alphabetic());
        self.days.is_after_signed_amount |= token.text.contains(['+', '-']);
        if value_of(unit, WEEKDAYS).is_some() {
            if !self.days.is_after_signed_amount && !unit.ends_with(['s', 'S']) {
                return Err(self.number_before_weekday(token));
            }
            return self.record_counted_weekday(token);
        }
        let start = token.end() - token.text.trim_start().len();
        let is_clock_unit = Unit::parse(unit).is_some_and(Unit::is_clock_unit);
        if Unit::parse(unit) == Some(Unit::Hour) && token.text.contains('-') {
            self.days.minus_hours.get_or_insert(start);
        }
        let unsigned = if is_clock_unit {
            &mut self.days.unsigned_clock_units
        } else {
            self.days.calendar_units = Some(start);
            &mut self.days.unsigned_calendar_units
        };
        if !self.days.is_after_signed_amount {
            unsigned.get_or_insert(start);
        }
        Ok(())
    }

    /// `ago` gives a direction to the amounts before it. It does not apply to `tomorrow`, and not to
    /// `friday`.
    pub(super) fn apply_ago(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let is_day = self.days.word.is_some_and(|(days, _)| days != 0);
        if is_day || self.days.weekday.is_some() {
            return Err(self.context.unrecognized(token.start));
        }
        (
            self.days.unsigned_clock_units,
            self.days.unsigned_calendar_units,
        ) = (None, None);
        Ok(())
    }

    /// `today`, `tomorrow`, `yesterday`. A different one in the same text is an error, and so are
    /// days before `tomorrow` or `yesterday`, which PHP ignores.
    pub(super) fn set_day_word(&mut self, days: i64, token: &Token<'_>) -> Result<(), Error> {
        let given = self.days.word.map(|(given, _)| given);
        let is_after_days = days != 0 && self.relative.days != given.unwrap_or_default();
        if given.is_some_and(|given| given != days) || is_after_days {
            return Err(self.context.duplicate("day", token.start));
        }
        if given.is_none() {
            self.days.word = Some((days, token.start));
            self.relative.days += days;
        }
        self.default_to_midnight();
        Ok(())
    }

    /// Rejects a duration beside a day or a time of day that has neither a sign nor a word for
    /// its direction: `15 minutes 18:00` may be before or after that time.
    pub(super) fn check_durations(&self) -> Result<(), Error> {
        let days = &self.days;
        let has_day = self.has_date_part()
            || days.word.is_some()
            || days.has_weekday()
            || days.never_compared.is_some();
        // `in 2 days, friday`: the day in two days is a friday, or the friday within or after them.
        if let Some(start) = days.calendar_units
            && self.context.is_from_now
            && has_day
        {
            return Err(self.context.duplicate("day", start));
        }
        let clock_units = days.unsigned_clock_units;
        let unsigned = clock_units
            .filter(|_| !self.counts_from_now())
            .or(days.unsigned_calendar_units.filter(|_| has_day));
        match unsigned {
            Some(start) if !self.context.is_from_now => Err(self.context.unrecognized(start)),
            _ => Ok(()),
        }
    }

    /// Replaces days that agree by one date.
    pub(super) fn resolve_day(&mut self) -> Result<(), Error> {
        let days = &self.days;
        match (days.word, days.weekday, days.never_compared) {
            (Some((_, start)), _, _) => self.resolve_day_word(start),
            (None, Some((_, start)), Some(other)) => {
                Err(self.context.duplicate("day", start.max(other)))
            }
            (None, Some(_), None) if self.names_day() && self.has_plain_weekday() => {
                let mut date = self.date_or(self.context.today)?;
                if !self.exists(date) {
                    return Ok(());
                }
                if let Some(days) = self.days.iso_days {
                    let day = i64::from(date.day()) + days;
                    date = date_of(date.year().into(), date.month().into(), day)?;
                }
                self.check_weekday(None, date)?;
                self.relative.weekday = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn resolve_day_word(&mut self, start: usize) -> Result<(), Error> {
        let days = &self.days;
        let is_beside_day = self.has_date_part() || days.weekday.is_some();
        let other = days
            .never_compared
            .or(days.not_compared_with_day_word)
            .or(days.counted_weekday)
            .or(days.calendar_units.filter(|_| is_beside_day));
        if let Some(other) = other {
            let weekday = days.weekday.map_or(start, |(_, weekday)| weekday);
            return Err(self.context.duplicate("day", start.max(other).max(weekday)));
        }
        if !is_beside_day {
            return Ok(());
        }
        let today = self.context.today;
        let day = i64::from(today.day()) + self.relative.days;
        let day = date_of(today.year().into(), today.month().into(), day)?;
        let date = self.date_or(day)?;
        if !self.exists(date) {
            return Ok(());
        }
        if date != day {
            return Err(Error::DifferentDays {
                word: Some(self.context.phrase(start)),
                date: day,
                other: date.to_string(),
            });
        }
        self.check_weekday(Some(start), day)?;
        self.relative.days = 0;
        self.relative.weekday = None;
        self.year = Some(day.year().into());
        self.month = Some(day.month().into());
        self.day = Some(day.day().into());
        Ok(())
    }

    /// Whether a year, a month or a day of the month is given.
    fn has_date_part(&self) -> bool {
        self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    /// Whether a date names one day, not only a month or a year.
    pub(super) fn names_day(&self) -> bool {
        self.has_date()
            && (self.has_day || self.days.has_day_of_year || self.days.iso_days.is_some())
    }

    /// Whether the weekday is the first one on or after the date, not that of a named week or before
    /// an `ago`.
    fn has_plain_weekday(&self) -> bool {
        self.relative.weekday_search == WeekdaySearch::OnOrAfter
            && self.relative.weekday.is_some_and(|weekday| weekday >= 0)
    }

    fn date_or(&self, default: Date) -> Result<Date, Error> {
        date_of(
            self.year.unwrap_or_else(|| default.year().into()),
            self.month.unwrap_or_else(|| default.month().into()),
            self.day.unwrap_or_else(|| default.day().into()),
        )
    }

    /// Whether the day of the month that is given, if one is, is in the calendar: `date_of` makes
    /// another `date` of 30 February. If it is not, `instant::resolve` rejects the text.
    fn exists(&self, date: Date) -> bool {
        !self.has_day || self.day == Some(date.day().into())
    }

    /// Rejects the text if its weekday is not that of the date. `word` is the position of the day
    /// word that names the date, if one does.
    fn check_weekday(&self, word: Option<usize>, date: Date) -> Result<(), Error> {
        let Some((weekday, start)) = self.days.weekday else {
            return Ok(());
        };
        if weekday == i64::from(date.weekday().to_sunday_zero_offset()) {
            return Ok(());
        }
        Err(Error::DifferentDays {
            word: word.map(|start| self.context.phrase(start)),
            date,
            other: format!("{:?}", self.context.phrase(start)),
        })
    }
}
