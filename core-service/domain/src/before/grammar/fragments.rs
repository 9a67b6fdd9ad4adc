//! Named parts of the rules: numbers, dates, times, time zones. The byte `\x00` represents the end of
//! the text.

use crate::before::word_tables::{
    MONTHS, ORDINALS, RELATIVE_WORDS, UNITS, WEEK, WEEKDAYS, WORKING_DAYS,
};

/// A part's name and regular expression, which may refer to the parts above it as `{NAME}`.
const FRAGMENTS: &[(&str, &str)] = table! {
    "SPACES" => r"[ \t]+";
    "DIGITS" => r"[0-9]+";
    "FRACTION" => r"\.{DIGITS}";
    // Numbers. Those called `…_PADDED` always have two digits; in the others, a leading zero is
    // optional.
    "HOUR24" => r"2[0-4]|[01]?[0-9]";
    "HOUR24_PADDED" => r"2[0-4]|[01][0-9]";
    "HOUR12" => r"1[0-2]|0?[1-9]";
    "MINUTE" => r"[0-5]?[0-9]";
    "MINUTE_PADDED" => r"[0-5][0-9]";
    "SECOND" => r"60|[0-5]?[0-9]";
    "SECOND_PADDED" => r"60|[0-5][0-9]";
    "YEAR4" => r"[0-9]{4}";
    // Beside the name of a month, other numbers of four digits are times of day.
    "YEAR" => r"19[6-9][0-9]|20[0-9]{2}";
    "NUMBER2" => r"[0-9]{1,2}";
    "MONTH" => r"1[0-2]|0?[0-9]";
    "MONTH_PADDED" => r"1[0-2]|0[0-9]";
    "DAY" => r"(3[01]|[0-2]?[0-9])(st|nd|rd|th)?";
    "DAY_PADDED" => r"3[01]|[0-2][0-9]";
    "WEEK_OF_YEAR" => r"0[1-9]|[1-4][0-9]|5[0-3]";
    "DAY_OF_YEAR" => r"00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6]";
    // Dates.
    // For dates with hyphens or slashes: `nov-25-2026`, `2026-nov-25`.
    "MONTH_ABBREVIATIONS" => r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)";
    "ROMAN_MONTH" => r"I|II|III|IV|V|VI|VII|VIII|IX|X|XI|XII";
    "MONTH_TEXT" => r"{MONTHS}|{ROMAN_MONTH}";
    // `mar` is a month only if a day or a year decides: it is Tuesday in three languages.
    "MONTH_OR_MAR" => r"{MONTH_TEXT}|(?i:mar)";
    "DAY_NAME" => r"{WEEKDAYS}|{WORKING_DAYS}";
    "DATE_SEPARATORS" => r"[ \t.-]*";
    "YEAR_SEPARATORS" => r"[ \t.,-]*";
    "DAY_SEPARATORS" => r"[,. \t]+";
    "MONTH_NAME_DAY" => r"{MONTH_TEXT}{DATE_SEPARATORS}{DAY}({DAY_SEPARATORS}|\x00)";
    "DAY_MONTH_NAME" => r"{DAY}{DATE_SEPARATORS}{MONTH_OR_MAR}";
    // Times of day.
    // `am` or `p.m.`, and the space or end of the text that must follow.
    "MERIDIEM" => r"[aApP]\.?[mM]\.?[\x00\t ]";
    "TIME12_HOUR" => r"{HOUR12}{SPACES}?{MERIDIEM}";
    // Not `05.12.26 am`, which starts with a date.
    "TIME12" => r"{HOUR12}([:.]{MINUTE_PADDED}|:{MINUTE}[:.]{SECOND_PADDED}){SPACES}?{MERIDIEM}";
    "TIME24_MINUTES" => r"[tT]?{HOUR24}:{MINUTE}|[tT]{HOUR24}\.{MINUTE}";
    "TIME24_SECONDS" => r"{TIME24_MINUTES}[:.]{SECOND}";
    "TIME_PADDED" => r"{HOUR24_PADDED}:{MINUTE_PADDED}:{SECOND_PADDED}";
    // Time zones.
    "OFFSET" =>
        r"(GMT)?[+-]({HOUR24}(:?{MINUTE})?|{HOUR24_PADDED}{MINUTE_PADDED}{SECOND_PADDED}|{TIME_PADDED})";
    // As in POSIX: `PST8PDT`.
    "TIME_ZONE" => r"{OFFSET}|[A-Z]{3}[0-9][A-Z]{3}|\(?[a-zA-Z]{1,6}\)?|[A-Z][a-z]+([_/-][a-zA-Z]+)+";
    // Relative times.
    "ORDINAL" => r"{ORDINALS}|{RELATIVE_WORDS}";
};

/// The words that the fragments and rules refer to, in any case of ASCII letters; besides `UNITS`.
const WORDS: &[(&str, &[&str])] = table! {
    "MONTHS" => MONTHS;
    "WEEKDAYS" => WEEKDAYS;
    "WORKING_DAYS" => WORKING_DAYS;
    "ORDINALS" => ORDINALS;
    "RELATIVE_WORDS" => RELATIVE_WORDS;
    "WEEK" => WEEK;
};

/// The regular expressions of the fragments, by their names in braces.
pub(super) struct Fragments(Vec<(String, String)>);

impl Fragments {
    pub(super) fn new() -> Self {
        let units: Vec<_> = UNITS.iter().map(|(_, names)| *names).collect();
        let tables = WORDS.iter().copied().chain([("UNITS", &units[..])]);
        let words = tables.map(|(name, table)| {
            let words: Vec<_> = table
                .iter()
                .flat_map(|names| names.split_whitespace())
                .collect();
            (format!("{{{name}}}"), format!("(?i:{})", words.join("|")))
        });
        let mut fragments = Self(words.collect());
        for (name, expression) in FRAGMENTS {
            let expression = format!("({})", fragments.expand(expression));
            fragments.0.push((format!("{{{name}}}"), expression));
        }
        fragments
    }

    /// Replaces the names by their regular expressions.
    pub(super) fn expand(&self, expression: &str) -> String {
        self.0
            .iter()
            .fold(expression.to_owned(), |expanded, (name, fragment)| {
                expanded.replace(name, fragment)
            })
    }
}
