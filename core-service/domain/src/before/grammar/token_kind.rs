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
    /// Two or three numbers with slashes, hyphens or dots: a date, or a time of day.
    Numbers,
    /// A time of day or a year.
    FourDigits,
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

impl TokenKind {
    /// Whether it is a day or a duration, not a time of day, and not numbers that may be one.
    pub(in crate::before) fn is_day(self) -> bool {
        match self {
            Self::Now
            | Self::Day(_)
            | Self::Timestamp
            | Self::MonthBoundary
            | Self::WeekdayOfMonth
            | Self::Weekday
            | Self::CalendarWeek
            | Self::OrdinalUnit
            | Self::Amount
            | Self::Month => true,
            Self::Fields(fields) => {
                fields.contains(&Field::Year) || fields.contains(&Field::MonthName)
            }
            _ => false,
        }
    }
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
