//! The words of the strict grammar. A word's place in its table is its value.

/// January is 0. The first table is the full names.
pub(super) const MONTHS: &[&[&str]] = &[
    &["january", "jan"],
    &["february", "feb"],
    &["march", "mar"],
    &["april", "apr"],
    &["may"],
    &["june", "jun"],
    &["july", "jul"],
    &["august", "aug"],
    &["september", "sept", "sep"],
    &["october", "oct"],
    &["november", "nov"],
    &["december", "dec"],
];

/// The short names that may stand between hyphens and slashes.
pub(super) const MONTH_ABBREVIATIONS: &[&[&str]] = &[
    &["jan"],
    &["feb"],
    &["mar"],
    &["apr"],
    &["may"],
    &["jun"],
    &["jul"],
    &["aug"],
    &["sept", "sep"],
    &["oct"],
    &["nov"],
    &["dec"],
];

/// Months in Roman numerals, capitals only.
pub(super) const ROMAN_MONTHS: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// Sunday is 0.
pub(super) const WEEKDAYS: &[&[&str]] = &[
    &["sunday", "sundays", "sun"],
    &["monday", "mondays", "mon"],
    &["tuesday", "tuesdays", "tue"],
    &["wednesday", "wednesdays", "wed"],
    &["thursday", "thursdays", "thu"],
    &["friday", "fridays", "fri"],
    &["saturday", "saturdays", "sat"],
];

/// Working days.
pub(super) const WORKDAYS: &[&[&str]] = &[&["weekday", "weekdays"]];

/// Which one: `this` is 0, `first` and `next` are 1.
pub(super) const ORDINALS: &[&[&str]] = &[
    &[],
    &["first"],
    &["second"],
    &["third"],
    &["fourth"],
    &["fifth"],
    &["sixth"],
    &["seventh"],
    &["eighth", "eight"],
    &["ninth"],
    &["tenth"],
    &["eleventh"],
    &["twelfth"],
];

/// Relative to the present one: `this` is 0, `next` is 1, `last` is 2.
pub(super) const DEICTICS: &[&[&str]] = &[&["this"], &["next"], &["last", "previous"]];

/// What can be counted, in the order of [`Unit::ALL`].
pub(super) const UNITS: &[&[&str]] = &[
    &[
        "microsecond",
        "microseconds",
        "usec",
        "usecs",
        "µsec",
        "µsecs",
        "µs",
    ],
    &["millisecond", "milliseconds", "msec", "msecs", "ms"],
    &["second", "seconds", "sec", "secs"],
    &["minute", "minutes", "min", "mins"],
    &["hour", "hours"],
    &["day", "days"],
    &["weeks"],
    &["fortnight", "fortnights", "forthnight", "forthnights"],
    &["month", "months"],
    &["year", "years"],
];

/// One week, which after `this`, `next` and `last` means the calendar's.
pub(super) const WEEK: &[&[&str]] = &[&["week"]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Fortnight,
    Month,
    Year,
}

impl Unit {
    const ALL: [Self; 10] = [
        Self::Microsecond,
        Self::Millisecond,
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Fortnight,
        Self::Month,
        Self::Year,
    ];

    pub(super) fn named(word: &str) -> Option<Self> {
        if value_of(word, WEEK).is_some() {
            return Some(Self::Week);
        }
        Self::ALL
            .get(usize::try_from(value_of(word, UNITS)?).ok()?)
            .copied()
    }
}

/// The place of a word in a table.
pub(super) fn value_of(word: &str, table: &[&[&str]]) -> Option<i64> {
    let place = table
        .iter()
        .position(|names| names.iter().any(|name| name.eq_ignore_ascii_case(word)))?;
    i64::try_from(place).ok()
}

/// The number of a month by its name, short name or Roman numeral: 1 to 12.
pub(super) fn month(word: &str) -> Option<i64> {
    let roman = || {
        ROMAN_MONTHS
            .iter()
            .position(|name| name.eq_ignore_ascii_case(word))
            .and_then(|at| i64::try_from(at).ok())
    };
    value_of(word, MONTHS).or_else(roman).map(|place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_words() {
        assert_eq!(UNITS.len(), Unit::ALL.len());
        assert_eq!(Unit::named("Hours"), Some(Unit::Hour));
        assert_eq!(Unit::named("week"), Some(Unit::Week));
        assert_eq!(Unit::named("years"), Some(Unit::Year));
        assert_eq!(Unit::named("yearly"), None);
    }

    #[test]
    fn months_have_three_kinds_of_names() {
        for name in ["september", "Sept", "SEP", "IX"] {
            assert_eq!(month(name), Some(9), "{name}");
        }
        assert_eq!(month("septembre"), None);
    }
}
