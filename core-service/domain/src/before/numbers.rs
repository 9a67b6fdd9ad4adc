//! Two or three numbers with slashes, hyphens or dots between them, and all that they may mean:
//! `03/12/2026`, `30-11-26`, `07.12.26`, `10.12`.

use super::context::DateOrder;
use super::instant::date_of;
use super::lexer::Token;
use super::parsed_time::TimeOfDay;
use jiff::civil::Date;

/// A date whose year may follow elsewhere in the text, or be the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumericDate {
    pub(super) year: Option<i64>,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl NumericDate {
    fn year_or(self, today: Date) -> i64 {
        self.year.unwrap_or_else(|| today.year().into())
    }

    /// The weekday, 0 for Sunday, if the date is in the calendar.
    pub(super) fn weekday(self, today: Date) -> Option<i64> {
        let date = date_of(self.year_or(today), self.month, self.day).ok()?;
        let is_in_calendar = i64::from(date.day()) == self.day;
        is_in_calendar.then(|| date.weekday().to_sunday_zero_offset().into())
    }

    pub(super) fn text(self, today: Date) -> String {
        let Self { month, day, .. } = self;
        format!("{:04}-{month:02}-{day:02}", self.year_or(today))
    }
}

/// The readings of a token. A date's fields are in range, but it may not be in the calendar:
/// `31-04-26` is rather a mistake in a day than a day of 2031.
#[derive(Clone, Debug)]
pub(super) struct Readings<'a> {
    pub(super) token: Token<'a>,
    pub(super) dates: Vec<NumericDate>,
    /// The only date starts with a year of two digits: `32-12-26` is rather a mistake.
    pub(super) is_year_first: bool,
    pub(super) time: Option<TimeOfDay>,
}

impl<'a> Readings<'a> {
    /// With dots, the day is before the month everywhere. With slashes, the country decides whether the
    /// month may be first or is; with hyphens and a full year, whether it may be. A year of two digits
    /// may be first or last; with dots, it is first only if that year is not past: `07.12.26` is never
    /// in 2007.
    pub(super) fn of(token: Token<'a>, date_order: DateOrder, today: Date) -> Self {
        let has_dots = token.text.contains('.');
        let parts: Vec<_> = token.text.split(['/', '-', '.']).collect();
        let number = |index: usize| {
            let part = parts.get(index).copied().unwrap_or_default();
            part.parse::<i64>().ok()
        };
        let (first, second, third) = (number(0), number(1), number(2));
        let is_year_last = parts.get(2).is_some_and(|part| part.len() > 2);
        let century = |year: i64| if year < 70 { 2000 } else { 1900 };
        let short_year = |year: i64| year + century(year);
        let last_year = if is_year_last {
            third
        } else {
            third.map(short_year)
        };
        let is_country_month_first = date_order == DateOrder::MonthFirst;
        let is_month_first = token.text.contains('/') && is_country_month_first;
        let may_be_month_first = match (has_dots, token.text.contains('-') && is_year_last) {
            (true, _) => false,
            (_, has_hyphens_and_year) => !has_hyphens_and_year || is_country_month_first,
        };
        // `30/11/26` has another reading than a year first wherever it is written.
        let may_be_day_first = !is_month_first || !is_year_last && !matches!(first, Some(1..=12));
        let first_year = first.map(short_year);
        let may_be_year_first = !is_year_last
            && (!has_dots || first_year.is_some_and(|year| year >= today.year().into()));
        let orders = [
            (may_be_day_first, last_year, second, first),
            (may_be_month_first, last_year, first, second),
            (may_be_year_first, first_year, second, third),
        ];
        let mut dates = Vec::new();
        for (is_possible, year, month, day) in orders {
            if let (Some(month @ 1..=12), Some(day @ 1..=31)) = (month, day) {
                let date = NumericDate { year, month, day };
                if is_possible && !dates.contains(&date) {
                    dates.push(date);
                }
            }
        }
        let is_year_first = !matches!(first, Some(1..=31)) && !is_year_last;
        // `10.13.` and `10.25.26` are mistakes in a date.
        let is_month_first_date = third.is_some()
            && dates.is_empty()
            && matches!((first, second), (Some(1..=12), Some(13..=31)));
        let is_dotted_date = (parts.len() == 3 && third.is_none()) || is_month_first_date;
        let time = match (first, second, third.unwrap_or_default()) {
            (Some(hour @ 0..=24), Some(minute @ 0..=59), second @ 0..=59)
                if has_dots && !is_dotted_date && (hour < 24 || dates.is_empty()) =>
            {
                Some(TimeOfDay {
                    second,
                    ..TimeOfDay::at(hour, minute)
                })
            }
            _ => None,
        };
        Self {
            token,
            dates,
            is_year_first,
            time,
        }
    }
}
