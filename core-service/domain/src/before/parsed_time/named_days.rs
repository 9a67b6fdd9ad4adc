//! The days and durations that the tokens of a text have named so far.

use super::super::grammar::TokenKind;

/// The days and durations that a text names in addition to a date. A `usize` is the position of a
/// token.
#[derive(Debug, Default)]
pub(super) struct NamedDays {
    /// The day word: `yesterday`, `today` or `tomorrow`. Its days from today, and its position.
    pub(super) word: Option<(i64, usize)>,
    /// A weekday without `next`, `last` or an amount: its number, 0 for Sunday, and its position.
    pub(super) weekday: Option<(i64, usize)>,
    /// `next monday`, `2 mondays`, `first monday of`.
    pub(super) counted_weekday: Option<usize>,
    /// A day that is not compared with a weekday or a day word: a Unix time, `last day of`.
    pub(super) never_compared: Option<usize>,
    /// A day that is not compared with a day word, but with a weekday: a week.
    pub(super) not_compared_with_day_word: Option<usize>,
    /// The days from 1 January to an ISO week or a day of it.
    pub(super) iso_days: Option<i64>,
    pub(super) has_day_of_year: bool,
    /// The name of a month without a day or a year.
    pub(super) month: Option<usize>,
    /// An amount of years, months, weeks, working days or days, or `next month`.
    pub(super) calendar_units: Option<usize>,
    /// Hours, minutes or seconds without a sign.
    pub(super) unsigned_clock_units: Option<usize>,
    /// An amount of years, months, weeks, working days or days, without a sign.
    pub(super) unsigned_calendar_units: Option<usize>,
    /// Hours with a minus sign.
    pub(super) minus_hours: Option<usize>,
    /// The previous token is an amount with a sign, which applies to the next one too.
    pub(super) is_after_signed_amount: bool,
}

impl NamedDays {
    /// Ends the effect of a signed amount at a token that is not another amount.
    pub(super) fn end_signed_amount(&mut self, kind: TokenKind) {
        self.is_after_signed_amount &= kind == TokenKind::Amount;
    }

    pub(super) fn has_weekday(&self) -> bool {
        self.weekday.is_some() || self.counted_weekday.is_some()
    }
}
