//! The rules, and their named parts: numbers, dates, times, time zones. The byte `\x00` represents the end of the text.

use super::super::word_tables::{
    MONTHS, ORDINALS, RELATIVE_WORDS, UNITS, WEEK, WEEKDAYS, WORKING_DAYS,
};
use super::{Field, TokenKind};
use Field::{
    Day, DayOfWeek, DayOfYear, FirstOfMonth, Fraction, Hour, Meridiem, Minute, Month, MonthName,
    Second, TimeZone, Week, Year,
};
use TokenKind::Fields;

const TIME12: TokenKind = Fields(&[Hour, Minute, Second, Fraction, Meridiem]);
const TIME24: TokenKind = Fields(&[Hour, Minute, Second, Fraction, TimeZone]);
const DATE: TokenKind = Fields(&[Year, Month, Day]);
const DATE_TIME: TokenKind = Fields(&[Year, Month, Day, Hour, Minute, Second, Fraction, TimeZone]);
const DAY_MONTH_YEAR: TokenKind = Fields(&[Day, Month, Year]);
const MONTH_NAME_DAY_YEAR: TokenKind = Fields(&[MonthName, Day, Year]);

/// The kind of token, and the regular expression of its text; `{NAME}` is one of the fragments.
pub(super) const RULES: &[(TokenKind, &str)] = table! {
    TokenKind::Day(-1) => r"(?i:yesterday)";
    TokenKind::Now => r"(?i:now)";
    TokenKind::Noon => r"(?i:noon)";
    TokenKind::Midnight => r"(?i:midnight)";
    TokenKind::Day(0) => r"(?i:today)";
    TokenKind::Day(1) => r"(?i:tomorrow)";
    TokenKind::Timestamp => r"@-?{DIGITS}(\.[0-9]{0,6})?";
    TokenKind::MonthBoundary => r"(?i:(first|last) day of)";
    TokenKind::WeekdayOfMonth => r"{ORDINAL}{SPACES}{WEEKDAYS}{SPACES}(?i:of)";
    TokenKind::Ago => r"(?i:ago)";
    TokenKind::Weekday => r"{DAY_NAME}";
    TokenKind::CalendarWeek => r"{RELATIVE_WORDS}{SPACES}{WEEK}";
    TokenKind::OrdinalUnit => r"{ORDINAL}{SPACES}({UNITS}|{DAY_NAME})";
    TokenKind::Month => r"{MONTHS}";
    TokenKind::TimeZone => r"{TIME_ZONE}";
    TokenKind::Amount => r"[+-]*[ \t]*[0-9]{1,13}{SPACES}?({UNITS}|{WEEK}|{DAY_NAME})";
    TokenKind::Separator => r"{SPACES}|[.,\n]";
    // Times of day. `back of 7pm` is 19:15, `front of 7pm` is 18:45.
    TokenKind::QuarterHour => r"(?i:(back|front) of ){HOUR24}({SPACES}?{MERIDIEM})?";
    TIME12 => r"{TIME12_HOUR}|{TIME12}";
    TIME12 => r"{HOUR12}:{MINUTE_PADDED}:{SECOND_PADDED}[:.]{DIGITS}{MERIDIEM}";
    TIME24 => r"[tT]{HOUR24}|{TIME24_MINUTES}|{TIME24_SECONDS}{FRACTION}?";
    TokenKind::FourDigits => r"[tT]?{HOUR24_PADDED}{MINUTE_PADDED}|{YEAR4}";
    TIME24 => r"[tT]?{HOUR24_PADDED}{MINUTE_PADDED}{SECOND_PADDED}";
    // Dates.
    TokenKind::Numbers => r"{NUMBER2}/{NUMBER2}(/({YEAR4}|{NUMBER2}))?";
    TokenKind::Numbers => r"{NUMBER2}-{NUMBER2}-({YEAR4}|{NUMBER2})|{NUMBER2}\.{NUMBER2}(\.([0-9]{2})?)?";
    DATE => r"([+-]?{YEAR4}|[+-][0-9]{5,19})-{MONTH_PADDED}-{DAY_PADDED}";
    DATE => r"{YEAR4}/{MONTH_PADDED}/{DAY_PADDED}/?|{YEAR4}/{MONTH}/{DAY}";
    Fields(&[Year, Month, FirstOfMonth]) => r"{YEAR4}-{MONTH}";
    DATE => r"[0-9]{3,4}-{MONTH}-{DAY}";
    Fields(&[Day, MonthName, Year]) =>
        r"{DAY}{DATE_SEPARATORS}{MONTH_OR_MAR}{YEAR_SEPARATORS}{YEAR}";
    DAY_MONTH_YEAR => r"{DAY}[.\t-]{MONTH}[.-]{YEAR4}";
    Fields(&[MonthName, Year, FirstOfMonth]) => r"{MONTH_TEXT}{YEAR_SEPARATORS}{YEAR}";
    Fields(&[Year, MonthName, FirstOfMonth]) => r"{YEAR}{DATE_SEPARATORS}{MONTH_TEXT}";
    MONTH_NAME_DAY_YEAR =>
        r"{MONTH_OR_MAR}{DATE_SEPARATORS}{DAY}{DAY_SEPARATORS}{YEAR}|{MONTH_NAME_DAY}";
    Fields(&[Day, MonthName]) => r"{DAY}{DATE_SEPARATORS}{MONTH_TEXT}";
    DATE => r"{YEAR4}{MONTH_PADDED}{DAY_PADDED}";
    DATE_TIME => r"{YEAR4}{MONTH_PADDED}{DAY_PADDED}T{HOUR24}:{MINUTE_PADDED}:{SECOND_PADDED}";
    DATE_TIME => r"{YEAR4}{MONTH_PADDED}{DAY_PADDED}[tT]{HOUR24}{MINUTE_PADDED}{SECOND_PADDED}";
    DATE_TIME => r"{YEAR4}-{MONTH_PADDED}-{DAY_PADDED}T{TIME_PADDED}{FRACTION}{OFFSET}?";
    DATE_TIME => r"{YEAR4}-{MONTH}-{DAY}T{HOUR24}:{MINUTE}:{SECOND}";
    DATE_TIME => r"{YEAR4}:{MONTH_PADDED}:{DAY_PADDED} {TIME_PADDED}";
    Fields(&[Year, DayOfYear]) => r"{YEAR4}[.-]?{DAY_OF_YEAR}";
    Fields(&[Year, Week, DayOfWeek]) => r"{YEAR4}-?W{WEEK_OF_YEAR}(-?[0-7])?";
    MONTH_NAME_DAY_YEAR => r"{MONTH_ABBREVIATIONS}-{DAY_PADDED}-{YEAR}";
    Fields(&[Year, MonthName, Day]) => r"{YEAR}-{MONTH_ABBREVIATIONS}-{DAY_PADDED}";
    Fields(&[Day, MonthName, Year, Hour, Minute, Second, TimeZone]) =>
        r"{DAY}/{MONTH_ABBREVIATIONS}/{YEAR4}:{TIME_PADDED}{SPACES}{OFFSET}";
    Fields(&[MonthName, Day, Hour, Minute, Second, Meridiem]) =>
        r"{MONTH_NAME_DAY}({TIME12_HOUR}|{TIME12})";
    Fields(&[MonthName, Day, Hour, Minute, Second, TimeZone]) =>
        r"{MONTH_NAME_DAY}({TIME24_SECONDS}|{TIME24_MINUTES}|{TIME24_MINUTES}[:.]{SECOND_PADDED}{SPACES}?{TIME_ZONE})";
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
    // `mar` is a month only if a year decides: it is Tuesday in three languages.
    "MONTH_OR_MAR" => r"{MONTH_TEXT}|(?i:mar)";
    "DAY_NAME" => r"{WEEKDAYS}|{WORKING_DAYS}";
    "DATE_SEPARATORS" => r"[ \t.-]*";
    "YEAR_SEPARATORS" => r"[ \t.,-]*";
    "DAY_SEPARATORS" => r"[,. \t]+";
    "MONTH_NAME_DAY" => r"{MONTH_TEXT}{DATE_SEPARATORS}{DAY}({DAY_SEPARATORS}|\x00)";
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
