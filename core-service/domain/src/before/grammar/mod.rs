//! The strict grammar: rules, each with its meaning. At each place of a text the rule with the
//! longest match wins, the earlier one of two as long.

mod clocks;
mod dates;
mod pieces;
mod words;

use super::pattern::Pattern;

pub(super) use clocks::CLOCK24_FIELDS;

/// The rules in the order of precedence.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    [words::RULES, clocks::RULES, dates::RULES]
        .into_iter()
        .flatten()
}

/// What a match of a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    Blank,
    Now,
    Yesterday,
    Today,
    Tomorrow,
    Noon,
    Midnight,
    Timestamp,
    BoundaryOfMonth,
    QuarterOfHour,
    WeekdayOfMonth,
    /// A date, a time or both, written in this order.
    Fields(&'static [Field]),
    /// Month, day and perhaps year with slashes, which can also be day and month.
    MonthFirst,
    DayFirst,
    /// Four digits: a time, or the year if there is a time already.
    ClockOrYear,
    Year,
    Ago,
    Weekday,
    WeekOfCalendar,
    Next,
    Amount,
    Month,
    Zone,
}

/// One number or word of a date or time. Those of a time after the hour may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Field {
    Year,
    Month,
    MonthName,
    Day,
    FirstOfMonth,
    DayOfYear,
    Week,
    WeekDay,
    Hour,
    Minute,
    Second,
    Fraction,
    Meridian,
    Zone,
}

pub(super) struct Rule {
    pub(super) meaning: Meaning,
    pub(super) pattern: Pattern,
}

const fn rule(meaning: Meaning, pattern: Pattern) -> Rule {
    Rule { meaning, pattern }
}
