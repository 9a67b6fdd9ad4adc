//! Dates with slashes: day first in most countries, month first in a few.

use super::context::{Context, DateOrder};
use super::error::Error;
use super::grammar::TokenKind;
use super::lexer::{Cursor, Token};
use jiff::civil::Date;

/// The year if given, the month and the day. In day-first countries, a date that is also valid
/// with the month first is rejected: a wrong guess would make a parcel late.
pub(super) fn date(
    token: &Token<'_>,
    context: Context<'_>,
) -> Result<(Option<i64>, i64, i64), Error> {
    let mut cursor = Cursor::new(token.text);
    let first = cursor.number(2).unwrap_or_default();
    let second = cursor.number(2).unwrap_or_default();
    let year = cursor.year(4);
    match (token.kind, context.date_order) {
        (TokenKind::DayFirstSlashDate, DateOrder::DayFirst) => Ok((year, second, first)),
        (TokenKind::DayFirstSlashDate, DateOrder::MonthFirst) => {
            Err(context.unrecognized(token.start))
        }
        (_, DateOrder::DayFirst) if (1..=12).contains(&second) && first != second => {
            let year = year.unwrap_or_else(|| i64::from(context.today.year()));
            Err(ambiguous(token.text, year, first, second))
        }
        _ => Ok((year, first, second)),
    }
}

/// The error for a date of which both orders are in range.
fn ambiguous(text: &str, year: i64, first: i64, second: i64) -> Error {
    let date = |month: i64, day: i64| {
        let (year, month, day) = (
            year.try_into().ok()?,
            month.try_into().ok()?,
            day.try_into().ok()?,
        );
        Date::new(year, month, day).ok()
    };
    match (date(second, first), date(first, second)) {
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
