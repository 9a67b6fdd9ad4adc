//! Dates, and dates with times.

use super::pieces::{
    AFTER_DAY, AFTER_MONTH, BETWEEN, BLANKS, CLOCK_PADDED, CLOCK12_LONG, CLOCK12_TINY,
    CLOCK24_LONG, CLOCK24_SHORT, CLOCK24_ZONED, COLONS12, COLONS24, DAY, DAY_MONTH_NAME,
    DAY_PADDED, DIGIT, FRACTION, HOUR24, MINUTE, MINUTE_PADDED, MONTH, MONTH_NAME_DAY,
    MONTH_PADDED, MONTH_TEXT, OFFSET, SECOND, SECOND_PADDED, SIGN, WEEK_OF_YEAR, YEAR, YEAR2,
    YEAR4, one, padded, short,
};
use super::{Field, Meaning, Rule, rule};
use crate::before::pattern::ByteSet;
use crate::before::pattern::Pattern::{Any, Bytes, Exact, Maybe, Seq, Text, Word};
use crate::before::words::MONTH_ABBREVIATIONS;

const DATE_FIELDS: &[Field] = &[Field::Year, Field::Month, Field::Day];
const DAY_MONTH_YEAR: &[Field] = &[Field::Day, Field::Month, Field::Year];
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

pub(super) const RULES: &[Rule] = &[
    rule(
        Meaning::MonthFirst,
        Seq(&[MONTH, Exact("/"), DAY, Maybe(&Seq(&[Exact("/"), YEAR]))]),
    ),
    rule(
        Meaning::DayFirst,
        Seq(&[
            short(13, 31),
            Exact("/"),
            short(1, 12),
            Maybe(&Seq(&[Exact("/"), YEAR])),
        ]),
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        Any(&[
            Seq(&[
                Any(&[
                    Seq(&[Maybe(&one(SIGN)), YEAR4]),
                    Seq(&[
                        one(SIGN),
                        Bytes {
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
        Seq(&[YEAR2, Exact("-"), MONTH_PADDED, Exact("-"), DAY_PADDED]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::Month, Field::FirstOfMonth]),
        Seq(&[YEAR4, Exact("-"), MONTH]),
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        Seq(&[YEAR, Exact("-"), MONTH, Exact("-"), DAY]),
    ),
    rule(
        Meaning::Fields(&[Field::Day, Field::MonthName, Field::Year]),
        Seq(&[DAY_MONTH_NAME, BETWEEN, YEAR]),
    ),
    rule(
        Meaning::Fields(DAY_MONTH_YEAR),
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
        Seq(&[DAY, one(ByteSet::of(b".\t")), MONTH, Exact("."), YEAR2]),
    ),
    rule(
        Meaning::Fields(&[Field::MonthName, Field::Year, Field::FirstOfMonth]),
        Seq(&[MONTH_TEXT, BETWEEN, YEAR4]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::MonthName, Field::FirstOfMonth]),
        Seq(&[YEAR4, BETWEEN, MONTH_TEXT]),
    ),
    rule(
        Meaning::Fields(MONTH_NAME_DAY_FIELDS),
        Any(&[
            Seq(&[MONTH_TEXT, BETWEEN, DAY, AFTER_DAY, YEAR]),
            MONTH_NAME_DAY,
        ]),
    ),
    rule(
        Meaning::Fields(&[Field::Day, Field::MonthName]),
        DAY_MONTH_NAME,
    ),
    rule(
        Meaning::Fields(DATE_FIELDS),
        Seq(&[YEAR4, MONTH_PADDED, DAY_PADDED]),
    ),
    rule(
        Meaning::Fields(DATE_CLOCK_FIELDS),
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
        Seq(&[YEAR4, Maybe(&one(ByteSet::of(b".-"))), padded(3, 1, 366)]),
    ),
    rule(
        Meaning::Fields(&[Field::Year, Field::Week, Field::WeekDay]),
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
    rule(Meaning::Year, YEAR4),
    rule(
        Meaning::Fields(&[
            Field::MonthName,
            Field::Day,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Meridian,
        ]),
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
        Seq(&[DAY_MONTH_NAME, AFTER_MONTH, Any(&[CLOCK12_TINY, COLONS12])]),
    ),
    rule(
        Meaning::Fields(&[
            Field::Day,
            Field::MonthName,
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Fraction,
        ]),
        Seq(&[DAY_MONTH_NAME, AFTER_MONTH, COLONS24]),
    ),
];
