//! The kinds of tokens.

/// What a token means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::before) enum TokenKind {
    Separator,
    Now,
    /// `yesterday`, `today` or `tomorrow`: its days from today.
    Day(i64),
    Noon,
    Midnight,
    Timestamp,
    /// `first day of`, `last day of`.
    MonthBoundary,
    /// `back of 10`, `front of 10`: a quarter past, a quarter to.
    QuarterHour,
    /// `first monday of`.
    WeekdayOfMonth,
    /// A date, a time or both, written in this order.
    Fields(&'static [Field]),
    /// Month, day and optional year with slashes; may also be day and month.
    SlashDate,
    /// Day, month and optional year with slashes; the day is above 12.
    DayFirstSlashDate,
    /// Four digits: a time, or the year if a time is already given.
    TimeOrYear,
    Year,
    Ago,
    Weekday,
    /// `this week`, `next week`.
    CalendarWeek,
    /// `next month`, `third day`, `last friday`.
    OrdinalUnit,
    /// `+2 hours`, `3 weekdays`.
    Amount,
    Month,
    TimeZone,
}

/// One number or word of a date or time. The fields of a time after the hour are optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::before) enum Field {
    Year,
    Month,
    MonthName,
    Day,
    /// Not in the text: sets the day to 1.
    FirstOfMonth,
    DayOfYear,
    Week,
    DayOfWeek,
    Hour,
    Minute,
    Second,
    Fraction,
    Meridiem,
    TimeZone,
}
