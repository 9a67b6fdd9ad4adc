//! Offsets relative to a date: amounts of time, weekdays, working days, month boundaries.

use super::instant::date_of;
use super::lexer::{Cursor, Token};
use super::word_tables::{ORDINALS, RELATIVE_WORDS, Unit, WEEKDAYS, value_of};

/// A relative offset. Amounts add up; each other field is replaced by the last token that sets it.
#[derive(Debug, Default)]
pub(super) struct RelativeOffset {
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
    pub(super) day_count: Option<DayCount>,
    pub(super) month_boundary: Option<MonthBoundary>,
}

/// Which occurrence of a weekday is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WeekdaySearch {
    /// The first one after the date; if negative days are added, the resulting date counts too.
    #[default]
    After,
    /// The date itself, or the first one after it.
    OnOrAfter,
    /// The one in the week of the date, from Monday to Sunday.
    SameWeek,
}

/// How days are counted if not as calendar days from the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayCount {
    /// Occurrences of the weekday, from the start of the month.
    WeekdaysFromMonthStart,
    /// Occurrences of the weekday, back from the end of the month.
    WeekdaysFromMonthEnd,
    /// Working days from the date.
    WorkingDays(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonthBoundary {
    FirstDay,
    LastDay,
}

impl RelativeOffset {
    /// `+2 hours`, `3 weekdays`, `1 monday`. `None` without a number.
    pub(super) fn add_amount(&mut self, token: &Token<'_>) -> Option<()> {
        let mut cursor = Cursor::new(token.text);
        let sign = cursor.sign();
        let amount = cursor.number(usize::MAX)?;
        self.add(sign * amount, cursor.remainder(), WeekdaySearch::OnOrAfter);
        Some(())
    }

    /// `next month`, `third day`, `last friday`. True if it names a weekday or working days.
    pub(super) fn add_ordinal_unit(&mut self, token: &Token<'_>) -> bool {
        let (amount, search, unit) = split_ordinal(token);
        self.add(amount, unit, search)
    }

    /// `this week`, `next week`. A weekday before or after it means the one in that week.
    pub(super) fn set_calendar_week(&mut self, token: &Token<'_>) {
        let (amount, search, unit) = split_ordinal(token);
        self.add(amount, unit, search);
        self.weekday_search = WeekdaySearch::SameWeek;
        self.weekday.get_or_insert(1);
    }

    pub(super) fn set_weekday(&mut self, token: &Token<'_>) {
        // `weekday` without a number is a Monday, as in PHP.
        self.weekday = value_of(token.text, WEEKDAYS).or(Some(1));
        if self.weekday_search != WeekdaySearch::SameWeek {
            self.weekday_search = WeekdaySearch::OnOrAfter;
        }
    }

    /// `first monday of`, `last friday of`.
    pub(super) fn set_weekday_of_month(&mut self, token: &Token<'_>) {
        let (amount, search, unit) = split_ordinal(token);
        let weekday = unit.split([' ', '\t']).next().unwrap_or_default();
        if amount > 0 {
            self.day_count = Some(DayCount::WeekdaysFromMonthStart);
            self.add(amount, weekday, WeekdaySearch::OnOrAfter);
        } else {
            self.day_count = Some(DayCount::WeekdaysFromMonthEnd);
            self.add(amount, weekday, search);
        }
    }

    pub(super) fn set_month_boundary(&mut self, token: &Token<'_>) {
        let is_first = token.text.starts_with(['f', 'F']);
        self.month_boundary = Some(if is_first {
            MonthBoundary::FirstDay
        } else {
            MonthBoundary::LastDay
        });
    }

    pub(super) fn has_clock_units(&self) -> bool {
        (self.hours, self.minutes, self.seconds, self.microseconds) != (0, 0, 0, 0)
    }

    /// `ago` negates amounts, weekdays and working days before it; not microseconds, as in PHP.
    pub(super) fn negate(&mut self) {
        self.years = -self.years;
        self.months = -self.months;
        self.days = -self.days;
        self.hours = -self.hours;
        self.minutes = -self.minutes;
        self.seconds = -self.seconds;
        self.weekday = self
            .weekday
            .map(|weekday| if weekday == 0 { -7 } else { -weekday });
        if let Some(DayCount::WorkingDays(count)) = &mut self.day_count {
            *count = -*count;
        }
    }

    /// Sets the days from 1 January to the Monday of an ISO week; `None` means week 1.
    pub(super) fn set_iso_week(&mut self, year: i64, week: Option<i64>) {
        let week = week.unwrap_or(1);
        let weekday =
            date_of(year, 1, 1).map_or(0, |date| date.weekday().to_sunday_zero_offset().into());
        let days_to_sunday_before_week_1 = if weekday > 4 { 7 - weekday } else { -weekday };
        self.days = days_to_sunday_before_week_1 + (week - 1) * 7 + 1;
    }

    /// Moves from the Monday set by [`Self::set_iso_week`] to another day of that week.
    pub(super) fn set_day_of_week(&mut self, day: Option<i64>) {
        self.days += day.map_or(0, |day| day - 1);
    }

    /// Adds `amount` of a unit. True if the unit is a weekday or working days.
    fn add(&mut self, amount: i64, unit: &str, search: WeekdaySearch) -> bool {
        if let Some(weekday) = value_of(unit, WEEKDAYS) {
            let weeks = if amount > 0 { amount - 1 } else { amount };
            self.days += weeks * 7;
            self.weekday = Some(weekday);
            self.weekday_search = search;
            return true;
        }
        // The grammar accepts one other word: `weekday`, for working days.
        let Some(unit) = Unit::parse(unit) else {
            self.day_count = Some(DayCount::WorkingDays(amount));
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

/// Splits `next month` into its amount, its weekday search, and its unit.
fn split_ordinal<'a>(token: &Token<'a>) -> (i64, WeekdaySearch, &'a str) {
    let mut cursor = Cursor::new(token.text);
    let word = cursor.word();
    let unit = cursor.remainder();
    let amount = match value_of(word, RELATIVE_WORDS) {
        Some(0) => return (0, WeekdaySearch::OnOrAfter, unit),
        Some(1) => 1,
        Some(_) => -1,
        None => value_of(word, ORDINALS).unwrap_or_default(),
    };
    (amount, WeekdaySearch::After, unit)
}
