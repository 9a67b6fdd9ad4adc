//! Dates, with and without times.

use super::fragments::{
    COLON_TIME12, COLON_TIME24, DATE_SEPARATORS, DAY, DAY_MONTH_NAME, DAY_PADDED, DAY_SEPARATORS,
    DIGIT, FRACTION, HOUR24, MINUTE, MINUTE_PADDED, MONTH, MONTH_NAME_DAY, MONTH_PADDED,
    MONTH_SEPARATORS, MONTH_TEXT, OFFSET, SECOND, SECOND_PADDED, SIGN, SPACES, TIME_PADDED, TIME12,
    TIME12_HOUR, TIME24_MINUTES, TIME24_SECONDS, TIME24_ZONED, WEEK_OF_YEAR, YEAR, YEAR2, YEAR4,
    one, one_or_two_digits, padded,
};
use super::rule::{Field, Rule, TokenKind, rule};
use crate::before::pattern::ByteSet;
use crate::before::pattern::Pattern::{Any, AnyCase, Bytes, Exact, Optional, Seq, Word};
use crate::before::word_tables::MONTH_ABBREVIATIONS;

const DATE_FIELDS: &[Field] = &[Field::Year, Field::Month, Field::Day];
const DAY_MONTH_YEAR: &[Field] = &[Field::Day, Field::Month, Field::Year];
const DATE_TIME_FIELDS: &[Field] = &[
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

pub(super) const RULES: &[Rule] = &[
    rule(
        TokenKind::SlashDate,
        Seq(&[MONTH, Exact("/"), DAY, Optional(&Seq(&[Exact("/"), YEAR]))]),
    ),
    rule(
        TokenKind::DayFirstSlashDate,
        Seq(&[
            one_or_two_digits(13, 31),
            Exact("/"),
            one_or_two_digits(1, 12),
            Optional(&Seq(&[Exact("/"), YEAR])),
        ]),
    ),
    rule(
        TokenKind::Fields(DATE_FIELDS),
        Any(&[
            Seq(&[
                Any(&[
                    Seq(&[Optional(&one(SIGN)), YEAR4]),
                    Seq(&[
                        one(SIGN),
                        Bytes {
                            set: DIGIT,
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
                Optional(&Exact("/")),
            ]),
            Seq(&[YEAR4, Exact("/"), MONTH, Exact("/"), DAY]),
        ]),
    ),
    rule(
        TokenKind::Fields(DATE_FIELDS),
        Seq(&[YEAR2, Exact("-"), MONTH_PADDED, Exact("-"), DAY_PADDED]),
    ),
    rule(
        TokenKind::Fields(&[Field::Year, Field::Month, Field::FirstOfMonth]),
        Seq(&[YEAR4, Exact("-"), MONTH]),
    ),
    rule(
        TokenKind::Fields(DATE_FIELDS),
        Seq(&[YEAR, Exact("-"), MONTH, Exact("-"), DAY]),
    ),
    rule(
        TokenKind::Fields(&[Field::Day, Field::MonthName, Field::Year]),
        Seq(&[DAY_MONTH_NAME, DATE_SEPARATORS, YEAR]),
    ),
    rule(
        TokenKind::Fields(DAY_MONTH_YEAR),
        Seq(&[
            DAY,
            one(ByteSet::of(b".\t-")),
            MONTH,
            one(ByteSet::of(b".-")),
            YEAR4,
        ]),
    ),
    rule(
        TokenKind::Fields(DAY_MONTH_YEAR),
        Seq(&[DAY, one(ByteSet::of(b".\t")), MONTH, Exact("."), YEAR2]),
    ),
    rule(
        TokenKind::Fields(&[Field::MonthName, Field::Year, Field::FirstOfMonth]),
        Seq(&[MONTH_TEXT, DATE_SEPARATORS, YEAR4]),
    ),
    rule(
        TokenKind::Fields(&[Field::Year, Field::MonthName, Field::FirstOfMonth]),
        Seq(&[YEAR4, DATE_SEPARATORS, MONTH_TEXT]),
    ),
    rule(
        TokenKind::Fields(MONTH_NAME_DAY_FIELDS),
        Any(&[
            Seq(&[MONTH_TEXT, DATE_SEPARATORS, DAY, DAY_SEPARATORS, YEAR]),
            MONTH_NAME_DAY,
        ]),
    ),
    rule(
        TokenKind::Fields(&[Field::Day, Field::MonthName]),
        DAY_MONTH_NAME,
    ),
    rule(
        TokenKind::Fields(DATE_FIELDS),
        Seq(&[YEAR4, MONTH_PADDED, DAY_PADDED]),
    ),
    rule(
        TokenKind::Fields(DATE_TIME_FIELDS),
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
                AnyCase("t"),
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
                TIME_PADDED,
                FRACTION,
                Optional(&OFFSET),
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
                TIME_PADDED,
            ]),
        ]),
    ),
    rule(
        TokenKind::Fields(&[Field::Year, Field::DayOfYear]),
        Seq(&[YEAR4, Optional(&one(ByteSet::of(b".-"))), padded(3, 1, 366)]),
    ),
    rule(
        TokenKind::Fields(&[Field::Year, Field::Week, Field::DayOfWeek]),
        Seq(&[
            YEAR4,
            Optional(&Exact("-")),
            Exact("W"),
            WEEK_OF_YEAR,
            Optional(&Seq(&[Optional(&Exact("-")), padded(1, 0, 7)])),
        ]),
    ),
    rule(
        TokenKind::Fields(MONTH_NAME_DAY_FIELDS),
        Seq(&[
            Word(MONTH_ABBREVIATIONS),
            Exact("-"),
            DAY_PADDED,
            Exact("-"),
            YEAR,
        ]),
    ),
    rule(
        TokenKind::Fields(&[Field::Year, Field::MonthName, Field::Day]),
        Seq(&[
            YEAR,
            Exact("-"),
            Word(MONTH_ABBREVIATIONS),
            Exact("-"),
            DAY_PADDED,
        ]),
    ),
    rule(
        TokenKind::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Year,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Zone,
        ]),
        Seq(&[
            DAY,
            Exact("/"),
            Word(MONTH_ABBREVIATIONS),
            Exact("/"),
            YEAR4,
            Exact(":"),
            TIME_PADDED,
            SPACES,
            OFFSET,
        ]),
    ),
    rule(TokenKind::Year, YEAR4),
    rule(
        TokenKind::Fields(&[
            Field::MonthName,
            Field::Day,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Meridiem,
        ]),
        Seq(&[MONTH_NAME_DAY, Any(&[TIME12_HOUR, TIME12])]),
    ),
    rule(
        TokenKind::Fields(&[
            Field::MonthName,
            Field::Day,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Zone,
        ]),
        Seq(&[
            MONTH_NAME_DAY,
            Any(&[TIME24_SECONDS, TIME24_MINUTES, TIME24_ZONED]),
        ]),
    ),
    // A day, a month and a time, without a year. Without these rules, the hour would be read as
    // the year.
    rule(
        TokenKind::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Meridiem,
        ]),
        Seq(&[
            DAY_MONTH_NAME,
            MONTH_SEPARATORS,
            Any(&[TIME12_HOUR, COLON_TIME12]),
        ]),
    ),
    rule(
        TokenKind::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Fraction,
        ]),
        Seq(&[DAY_MONTH_NAME, MONTH_SEPARATORS, COLON_TIME24]),
    ),
];
