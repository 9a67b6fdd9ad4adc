//! The rules. The longest match wins; of two matches of equal length, the earlier rule.

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
    Fields(&[Day, MonthName, Year]) => r"{DAY_MONTH_NAME}{YEAR_SEPARATORS}{YEAR}";
    DAY_MONTH_YEAR => r"{DAY}[.\t-]{MONTH}[.-]{YEAR4}";
    Fields(&[MonthName, Year, FirstOfMonth]) => r"{MONTH_TEXT}{YEAR_SEPARATORS}{YEAR}";
    Fields(&[Year, MonthName, FirstOfMonth]) => r"{YEAR}{DATE_SEPARATORS}{MONTH_TEXT}";
    MONTH_NAME_DAY_YEAR =>
        r"{MONTH_OR_MAR}{DATE_SEPARATORS}{DAY}{DAY_SEPARATORS}{YEAR}|{MONTH_NAME_DAY}";
    Fields(&[Day, MonthName]) => r"{DAY_MONTH_NAME}";
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
