//! How far a text goes from its date: amounts, weekdays, working days, the ends of a month.

use super::lexer::{Cursor, Token};
use super::words::{DEICTICS, ORDINALS, Unit, WEEKDAYS, value_of};
use jiff::civil::Date;

/// Distances add up as they are read; each of the others replaces the one before it.
#[derive(Debug, Default)]
pub(super) struct Relative {
    pub(super) years: i64,
    pub(super) months: i64,
    pub(super) days: i64,
    pub(super) hours: i64,
    pub(super) minutes: i64,
    pub(super) seconds: i64,
    pub(super) microseconds: i64,
    /// Sunday is 0; negative after `ago`.
    pub(super) weekday: Option<i64>,
    pub(super) weekday_search: WeekdaySearch,
    pub(super) special: Option<Special>,
    pub(super) boundary: Option<Boundary>,
}

/// Which of the days with a weekday's name is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WeekdaySearch {
    /// The first after the date.
    #[default]
    After,
    /// The date itself, or the first after it.
    OnOrAfter,
    /// The one in the date's week, which begins on Monday.
    SameWeek,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// The weekday is counted from the beginning of the month.
    FromStartOfMonth,
    /// The weekday is counted back from the end of the month.
    FromEndOfMonth,
    Workdays(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    FirstDay,
    LastDay,
}

impl Relative {
    /// `+2 hours`, `3 weekdays`, `1 monday`. `None` if the number is too large.
    pub(super) fn amount(&mut self, token: &Token<'_>) -> Option<()> {
        let mut cursor = Cursor::new(token.text);
        let sign = cursor.sign();
        let (amount, _) = cursor.number(usize::MAX)?;
        self.add(sign * amount, cursor.remainder(), WeekdaySearch::OnOrAfter);
        Some(())
    }

    /// `next month`, `third day`, `last friday`. True if it names a day, which then has no time.
    pub(super) fn next(&mut self, token: &Token<'_>) -> bool {
        let (amount, search, what) = ordinal(token);
        self.add(amount, what, search)
    }

    /// `this week`, `next week`: the weekday said before or after is looked for in that week.
    pub(super) fn week_of_calendar(&mut self, token: &Token<'_>) {
        let (amount, search, what) = ordinal(token);
        self.add(amount, what, search);
        self.weekday_search = WeekdaySearch::SameWeek;
        self.weekday.get_or_insert(1);
    }

    pub(super) fn weekday(&mut self, token: &Token<'_>) {
        // A bare `weekday` is a Monday, as PHP has it.
        self.weekday = value_of(token.text, WEEKDAYS).or(Some(1));
        if self.weekday_search != WeekdaySearch::SameWeek {
            self.weekday_search = WeekdaySearch::OnOrAfter;
        }
    }

    /// `first monday of`, `last friday of`.
    pub(super) fn weekday_of_month(&mut self, token: &Token<'_>) {
        let (amount, search, what) = ordinal(token);
        let weekday = what.split([' ', '\t']).next().unwrap_or_default();
        if amount > 0 {
            self.special = Some(Special::FromStartOfMonth);
            self.add(amount, weekday, WeekdaySearch::OnOrAfter);
        } else {
            self.special = Some(Special::FromEndOfMonth);
            self.add(amount, weekday, search);
        }
    }

    pub(super) fn boundary_of_month(&mut self, token: &Token<'_>) {
        let first = token.text.starts_with(['f', 'F']);
        self.boundary = Some(if first {
            Boundary::FirstDay
        } else {
            Boundary::LastDay
        });
    }

    /// `ago` turns everything said before it round.
    pub(super) fn turn_back(&mut self) {
        self.years = -self.years;
        self.months = -self.months;
        self.days = -self.days;
        self.hours = -self.hours;
        self.minutes = -self.minutes;
        self.seconds = -self.seconds;
        self.weekday = self
            .weekday
            .map(|weekday| if weekday == 0 { -7 } else { -weekday });
        if let Some(Special::Workdays(count)) = &mut self.special {
            *count = -*count;
        }
    }

    /// The Monday of an ISO week, as days from the first of January of its year.
    pub(super) fn set_week(&mut self, year: i64, week: Option<(i64, usize)>) {
        let (week, _) = week.unwrap_or((1, 2));
        let first = i16::try_from(year)
            .ok()
            .and_then(|year| Date::new(year, 1, 1).ok());
        let weekday = first.map_or(0, |date| i64::from(date.weekday().to_sunday_zero_offset()));
        let before_first_week = if weekday > 4 { 7 - weekday } else { -weekday };
        self.days = before_first_week + (week - 1) * 7 + 1;
    }

    /// Another day than the Monday that [`Self::set_week`] has set.
    pub(super) fn set_day_of_week(&mut self, day: Option<(i64, usize)>) {
        if let Some((day, _)) = day {
            self.days += day - 1;
        }
    }

    /// True if `what` is a weekday or working days.
    fn add(&mut self, amount: i64, what: &str, search: WeekdaySearch) -> bool {
        if let Some(weekday) = value_of(what, WEEKDAYS) {
            self.days += if amount > 0 { amount - 1 } else { amount } * 7;
            self.weekday = Some(weekday);
            self.weekday_search = search;
            return true;
        }
        let Some(unit) = Unit::named(what) else {
            self.special = Some(Special::Workdays(amount));
            return true;
        };
        match unit {
            Unit::Microsecond => self.microseconds += amount,
            Unit::Millisecond => self.microseconds += amount * 1000,
            Unit::Second => self.seconds += amount,
            Unit::Minute => self.minutes += amount,
            Unit::Hour => self.hours += amount,
            Unit::Day => self.days += amount,
            Unit::Week => self.days += amount * 7,
            Unit::Fortnight => self.days += amount * 14,
            Unit::Month => self.months += amount,
            Unit::Year => self.years += amount,
        }
        false
    }
}

/// Splits `next month` into its amount, how it looks for a weekday, and `month`.
fn ordinal<'a>(token: &Token<'a>) -> (i64, WeekdaySearch, &'a str) {
    let mut cursor = Cursor::new(token.text);
    let word = cursor.word();
    let what = cursor.remainder();
    match value_of(word, DEICTICS) {
        Some(0) => (0, WeekdaySearch::OnOrAfter, what),
        Some(1) => (1, WeekdaySearch::After, what),
        Some(_) => (-1, WeekdaySearch::After, what),
        None => (
            value_of(word, ORDINALS).unwrap_or_default(),
            WeekdaySearch::After,
            what,
        ),
    }
}
