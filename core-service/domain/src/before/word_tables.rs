//! The words of the strict grammar, and abbreviated units. A row has the words of one meaning, with
//! spaces between them.

/// Month names and their abbreviations, except [`MAR`]; January is 0.
pub(super) const MONTHS: &[&str] = &[
    "january jan",
    "february feb",
    "march",
    "april apr",
    "may",
    "june jun",
    "july jul",
    "august aug",
    "september sept sep",
    "october oct",
    "november nov",
    "december dec",
];

/// March, and Tuesday in French, Spanish and Italian.
const MAR: &[&str] = &["", "", "mar"];

/// Months as Roman numerals; the grammar accepts capitals only.
const ROMAN_MONTHS: &[&str] = &[
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// Sunday is 0.
pub(super) const WEEKDAYS: &[&str] = &[
    "sunday sundays sun",
    "monday mondays mon",
    "tuesday tuesdays tue",
    "wednesday wednesdays wed",
    "thursday thursdays thu",
    "friday fridays fri",
    "saturday saturdays sat",
];

/// The words for working days, Monday to Friday.
pub(super) const WORKING_DAYS: &[&str] = &["weekday weekdays"];

/// Ordinal numbers: `first` is 1.
pub(super) const ORDINALS: &[&str] = &[
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth eight",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
];

/// Words relative to the current day, week, month or year. Index 0 is the current one, 1 the next
/// and 2 the previous.
pub(super) const RELATIVE_WORDS: &[&str] = &["this", "next", "last previous"];

/// Units of time. PHP accepts the misspelling `forthnight`.
pub(super) const UNITS: &[(Unit, &str)] = table! {
    Unit::Microsecond => "microsecond microseconds usec usecs µsec µsecs µs";
    Unit::Millisecond => "millisecond milliseconds msec msecs ms";
    Unit::Second => "second seconds sec secs";
    Unit::Minute => "minute minutes min mins";
    Unit::Hour => "hour hours";
    Unit::Day => "day days";
    Unit::Week => "weeks";
    Unit::Fortnight => "fortnight fortnights forthnight forthnights";
    Unit::Month => "month months";
    Unit::Year => "year years";
};

/// One week; after `this`, `next` and `last` it means a calendar week.
pub(super) const WEEK: &[&str] = &["week"];

/// Units, each with abbreviations that PHP does not accept; `j` is French. `natural_language` has
/// the words of other languages.
const UNIT_ABBREVIATIONS: &[(&str, &str)] = table! {
    "weeks" => "w";
    "days" => "d j";
    "hours" => "h hr hrs";
    "minutes" => "m mn";
    "seconds" => "s";
};

/// The unit with this abbreviation. A capital `M` has no unit: it may mean months.
pub(super) fn abbreviated_unit(word: &str) -> Option<&'static str> {
    let mut units = UNIT_ABBREVIATIONS.iter();
    let (unit, _) = units.find(|(_, names)| word != "M" && has_word(names, word))?;
    Some(unit)
}

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
    /// Whether it is an hour or a part of one.
    pub(super) fn is_clock_unit(self) -> bool {
        matches!(
            self,
            Self::Microsecond | Self::Millisecond | Self::Second | Self::Minute | Self::Hour
        )
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        if value_of(word, WEEK).is_some() {
            return Some(Self::Week);
        }
        let mut units = UNITS.iter();
        let (unit, _) = units.find(|(_, names)| has_word(names, word))?;
        Some(*unit)
    }
}

/// The index of the row that contains a word.
pub(super) fn value_of(word: &str, table: &[&str]) -> Option<i64> {
    let index = table.iter().position(|names| has_word(names, word))?;
    i64::try_from(index).ok()
}

/// The number of a month, 1 to 12, by its name, abbreviation or Roman numeral.
pub(super) fn month(word: &str) -> Option<i64> {
    let mut tables = [MONTHS, MAR, ROMAN_MONTHS].into_iter();
    Some(tables.find_map(|table| value_of(word, table))? + 1)
}

/// Whether a word is one of several with spaces between them.
pub(super) fn has_word(names: &str, word: &str) -> bool {
    let mut names = names.as_bytes().split(|byte| *byte == b' ');
    names.any(|name| name.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed_from_their_words() {
        assert_eq!(Unit::parse("Hours"), Some(Unit::Hour));
        assert_eq!(Unit::parse("week"), Some(Unit::Week));
        assert_eq!(Unit::parse("years"), Some(Unit::Year));
        assert_eq!(Unit::parse("yearly"), None);
    }

    #[test]
    fn months_are_parsed_from_names_abbreviations_and_roman_numerals() {
        for name in ["september", "Sept", "SEP", "IX"] {
            assert_eq!(month(name), Some(9), "{name}");
        }
        assert_eq!(month("septembre"), None);
    }
}
