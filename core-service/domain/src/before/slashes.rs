//! Dates with slashes, whose day comes first in most countries and whose month does in a few.

use super::DateOrder;
use super::context::Context;
use super::error::Error;
use super::grammar::Meaning;
use super::lexer::{Cursor, Token};
use super::reading::full_year;
use jiff::civil::Date;

/// The year if it is written, the month and the day. Where days come first, a date that can be
/// read both ways is refused: a guess would be a late parcel.
pub(super) fn date(
    token: &Token<'_>,
    context: Context<'_>,
) -> Result<(Option<i64>, i64, i64), Error> {
    let mut cursor = Cursor::new(token.text);
    let (first, _) = cursor.number(2).unwrap_or_default();
    let (second, _) = cursor.number(2).unwrap_or_default();
    let year = cursor
        .number(4)
        .map(|(year, digits)| full_year(year, digits));
    match (token.meaning, context.order) {
        (Meaning::DayFirst, DateOrder::DayFirst) => Ok((year, second, first)),
        (Meaning::DayFirst, DateOrder::MonthFirst) => Err(context.not_understood(token.start)),
        (_, DateOrder::DayFirst) if (1..=12).contains(&second) && first != second => {
            let named = year.unwrap_or_else(|| i64::from(context.today.year()));
            Err(ambiguous(token.text, named, first, second))
        }
        _ => Ok((year, first, second)),
    }
}

fn ambiguous(text: &str, year: i64, first: i64, second: i64) -> Error {
    let reading = |month: i64, day: i64| {
        let (year, month, day) = (
            year.try_into().ok()?,
            month.try_into().ok()?,
            day.try_into().ok()?,
        );
        Date::new(year, month, day).ok()
    };
    match (reading(second, first), reading(first, second)) {
        (Some(day_first), Some(month_first)) => Error::Ambiguous {
            text: text.to_owned(),
            day_first,
            month_first,
        },
        _ => Error::NoSuchDate {
            year,
            month: first,
            day: second,
        },
    }
}
