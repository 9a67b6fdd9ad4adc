//! The strict grammar: rules, each with its meaning. At each place of a text the rule with the
//! longest match wins, the earlier one of two as long.

use super::pattern::{ByteSet, Pattern};
use super::pieces::*;
use super::words::{DEICTICS, MONTH_ABBREVIATIONS, MONTHS, UNITS, WEEK, WEEKDAYS};
use Pattern::{Any, Exact, Maybe, Seq, Text, Word};

/// What a match of a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What its first byte can be, so that most rules need not be tried.
    pub(super) begins: ByteSet,
    pub(super) pattern: Pattern,
}

const DATE_FIELDS: &[Field] = &[Field::Year, Field::Month, Field::Day];
const DAY_MONTH_YEAR: &[Field] = &[Field::Day, Field::Month, Field::Year];
const CLOCK12_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Meridian,
];
pub(super) const CLOCK24_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Zone,
];
const DATE_CLOCK_FIELDS: &[Field] = &[
    Field::Year,
    Field::Month,
    Field::Day,
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Zone,
];
const MONTH_NAME_DAY_FIELDS: &[Field] = &[Field::MonthName, Field::Day, Field::Year];

const fn rule(meaning: Meaning, begins: ByteSet, pattern: Pattern) -> Rule {
    Rule {
        meaning,
        begins,
        pattern,
    }
}

/// The rules that begin with a letter or a digit come in the order of precedence.
pub(super) const RULES: &[Rule] = &[
    rule(Meaning::Yesterday, LETTER, Text("yesterday")),
    rule(Meaning::Now, LETTER, Text("now")),
    rule(Meaning::Noon, LETTER, Text("noon")),
    rule(Meaning::Midnight, LETTER, Text("midnight")),
    rule(Meaning::Today, LETTER, Text("today")),
    rule(Meaning::Tomorrow, LETTER, Text("tomorrow")),
    rule(
        Meaning::Timestamp,
        ByteSet::of(b"@"),
        Seq(&[
            Exact("@"),
            Maybe(&Exact("-")),
            DIGITS,
            Maybe(&Seq(&[
                Exact("."),
                Pattern::Bytes {
                    of: DIGIT,
                    min: 0,
                    max: 6,
                },
            ])),
        ]),
    ),
    rule(
        Meaning::BoundaryOfMonth,
        LETTER,
        Any(&[Text("first day of"), Text("last day of")]),
    ),
    rule(
        Meaning::QuarterOfHour,
        LETTER,
        Seq(&[
            Any(&[Text("back of "), Text("front of ")]),
            HOUR24,
            Maybe(&Seq(&[Maybe(&BLANKS), MERIDIAN])),
        ]),
    ),
    rule(
        Meaning::WeekdayOfMonth,
        LETTER,
        Seq(&[ORDINAL, BLANKS, Word(WEEKDAYS), BLANKS, Text("of")]),
    ),
    rule(
        Meaning::Fields(CLOCK12_FIELDS),
        DIGIT,
        Any(&[CLOCK12_TINY, CLOCK12_LONG]),
    ),
    rule(
        Meaning::Fields(CLOCK12_FIELDS),
        DIGIT,
        Seq(&[
            HOUR12,
            Exact(":"),
            MINUTE_PADDED,
            Exact(":"),
            SECOND_PADDED,
            COLON,
            DIGITS,
            MERIDIAN,
        ]),
    ),
    rule(
        Meaning::Fields(CLOCK24_FIELDS),
        CLOCK_START,
        Any(&[
            Seq(&[Text("t"), HOUR24]),
            CLOCK24_SHORT,
            Seq(&[CLOCK24_LONG, Maybe(&FRACTION)]),
        ]),
    ),
    rule(
        Meaning::ClockOrYear,
        CLOCK_START,
        Seq(&[T, HOUR24_PADDED, MINUTE_PADDED]),
    ),
    rule(
        Meaning::Fields(CLOCK24_FIELDS),
        CLOCK_START,
        Seq(&[T, HOUR24_PADDED, MINUTE_PADDED, SECOND_PADDED]),
    ),
    rule(
        Meaning::MonthFirst,
        DIGIT,
        Seq(&[MONTH, Exact("/"), DAY, Maybe(&Seq(&[Exact("/"), YEAR]))]),
    ),
    rule(
        Meaning::DayFirst,
        DIGIT,
        Seq(&[
            short(13, 31),
            Exact("/"),
            short(1, 12),
            Maybe(&Seq(&[Exact("/"), YEAR])),
        ]),
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        DIGIT.and(SIGN),
        Any(&[
            Seq(&[
                Any(&[
                    Seq(&[Maybe(&one(SIGN)), YEAR4]),
                    Seq(&[
                        one(SIGN),
                        Pattern::Bytes {
                            of: DIGIT,
                            min: 5,
                            max: 19,
                        },
                    ]),
                ]),
                Exact("-"),
                MONTH_PADDED,
                Exact("-"),
                DAY_PADDED,
            ]),
            Seq(&[
                YEAR4,
                Exact("/"),
                MONTH_PADDED,
                Exact("/"),
                DAY_PADDED,
                Maybe(&Exact("/")),
            ]),
            Seq(&[YEAR4, Exact("/"), MONTH, Exact("/"), DAY]),
        ]),
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        DIGIT,
        Seq(&[YEAR2, Exact("-"), MONTH_PADDED, Exact("-"), DAY_PADDED]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::Month, Field::FirstOfMonth]),
        DIGIT,
        Seq(&[YEAR4, Exact("-"), MONTH]),
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        DIGIT,
        Seq(&[YEAR, Exact("-"), MONTH, Exact("-"), DAY]),
    ),
    rule(
        Meaning::Fields(&[Field::Day, Field::MonthName, Field::Year]),
        DIGIT,
        Seq(&[DAY_MONTH_NAME, BETWEEN, YEAR]),
    ),
    rule(
        Meaning::Fields(DAY_MONTH_YEAR),
        DIGIT,
        Seq(&[
            DAY,
            one(ByteSet::of(b".\t-")),
            MONTH,
            one(ByteSet::of(b".-")),
            YEAR4,
        ]),
    ),
    rule(
        Meaning::Fields(DAY_MONTH_YEAR),
        DIGIT,
        Seq(&[DAY, one(ByteSet::of(b".\t")), MONTH, Exact("."), YEAR2]),
    ),
    rule(
        Meaning::Fields(&[Field::MonthName, Field::Year, Field::FirstOfMonth]),
        LETTER,
        Seq(&[MONTH_TEXT, BETWEEN, YEAR4]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::MonthName, Field::FirstOfMonth]),
        DIGIT,
        Seq(&[YEAR4, BETWEEN, MONTH_TEXT]),
    ),
    rule(
        Meaning::Fields(MONTH_NAME_DAY_FIELDS),
        LETTER,
        Any(&[
            Seq(&[MONTH_TEXT, BETWEEN, DAY, AFTER_DAY, YEAR]),
            MONTH_NAME_DAY,
        ]),
    ),
    rule(
        Meaning::Fields(&[Field::Day, Field::MonthName]),
        DIGIT,
        DAY_MONTH_NAME,
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        DIGIT,
        Seq(&[YEAR4, MONTH_PADDED, DAY_PADDED]),
    ),
    rule(
        Meaning::Fields(DATE_CLOCK_FIELDS),
        DIGIT,
        Any(&[
            Seq(&[
                YEAR4,
                MONTH_PADDED,
                DAY_PADDED,
                Exact("T"),
                HOUR24,
                Exact(":"),
                MINUTE_PADDED,
                Exact(":"),
                SECOND_PADDED,
            ]),
            Seq(&[
                YEAR4,
                MONTH_PADDED,
                DAY_PADDED,
                Text("t"),
                HOUR24,
                MINUTE_PADDED,
                SECOND_PADDED,
            ]),
            Seq(&[
                YEAR4,
                Exact("-"),
                MONTH_PADDED,
                Exact("-"),
                DAY_PADDED,
                Exact("T"),
                CLOCK_PADDED,
                FRACTION,
                Maybe(&OFFSET),
            ]),
            Seq(&[
                YEAR4,
                Exact("-"),
                MONTH,
                Exact("-"),
                DAY,
                Exact("T"),
                HOUR24,
                Exact(":"),
                MINUTE,
                Exact(":"),
                SECOND,
            ]),
            Seq(&[
                YEAR4,
                Exact(":"),
                MONTH_PADDED,
                Exact(":"),
                DAY_PADDED,
                Exact(" "),
                CLOCK_PADDED,
            ]),
        ]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::DayOfYear]),
        DIGIT,
        Seq(&[YEAR4, Maybe(&one(ByteSet::of(b".-"))), padded(3, 1, 366)]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::Week, Field::WeekDay]),
        DIGIT,
        Seq(&[
            YEAR4,
            Maybe(&Exact("-")),
            Exact("W"),
            WEEK_OF_YEAR,
            Maybe(&Seq(&[Maybe(&Exact("-")), padded(1, 0, 7)])),
        ]),
    ),
    rule(
        Meaning::Fields(MONTH_NAME_DAY_FIELDS),
        LETTER,
        Seq(&[
            Word(MONTH_ABBREVIATIONS),
            Exact("-"),
            DAY_PADDED,
            Exact("-"),
            YEAR,
        ]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::MonthName, Field::Day]),
        DIGIT,
        Seq(&[
            YEAR,
            Exact("-"),
            Word(MONTH_ABBREVIATIONS),
            Exact("-"),
            DAY_PADDED,
        ]),
    ),
    rule(
        Meaning::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Year,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Zone,
        ]),
        DIGIT,
        Seq(&[
            DAY,
            Exact("/"),
            Word(MONTH_ABBREVIATIONS),
            Exact("/"),
            YEAR4,
            Exact(":"),
            CLOCK_PADDED,
            BLANKS,
            OFFSET,
        ]),
    ),
    rule(Meaning::Year, DIGIT, YEAR4),
    rule(Meaning::Ago, LETTER, Text("ago")),
    rule(Meaning::Weekday, LETTER, WEEKDAY),
    rule(
        Meaning::WeekOfCalendar,
        LETTER,
        Seq(&[Word(DEICTICS), BLANKS, Word(WEEK)]),
    ),
    rule(
        Meaning::Next,
        LETTER,
        Seq(&[ORDINAL, BLANKS, Any(&[Word(UNITS), WEEKDAY])]),
    ),
    rule(Meaning::Month, LETTER, Word(MONTHS)),
    rule(Meaning::Zone, LETTER.and(SIGN).and(ByteSet::of(b"(")), ZONE),
    rule(
        Meaning::Fields(&[
            Field::MonthName,
            Field::Day,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Meridian,
        ]),
        LETTER,
        Seq(&[MONTH_NAME_DAY, Any(&[CLOCK12_TINY, CLOCK12_LONG])]),
    ),
    rule(
        Meaning::Fields(&[
            Field::MonthName,
            Field::Day,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Zone,
        ]),
        LETTER,
        Seq(&[
            MONTH_NAME_DAY,
            Any(&[CLOCK24_LONG, CLOCK24_SHORT, CLOCK24_ZONED]),
        ]),
    ),
    // A day and a month without a year, then a time: the hour is not the year.
    rule(
        Meaning::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Meridian,
        ]),
        DIGIT,
        Seq(&[DAY_MONTH_NAME, AFTER_DAY, Any(&[CLOCK12_TINY, COLONS12])]),
    ),
    rule(
        Meaning::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Hour,
            Field::Minute,
            Field::Second,
        ]),
        DIGIT,
        Seq(&[DAY_MONTH_NAME, AFTER_DAY, COLONS24]),
    ),
    rule(
        Meaning::Amount,
        DIGIT.and(SIGN).and(BLANK),
        Seq(&[
            COUNT,
            Maybe(&BLANKS),
            Any(&[Word(UNITS), Word(WEEK), WEEKDAY]),
        ]),
    ),
    rule(
        Meaning::Blank,
        ByteSet::of(b" \t.,\n"),
        Any(&[BLANKS, one(ByteSet::of(b".,\n"))]),
    ),
];
