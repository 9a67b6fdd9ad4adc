//! Times of day.

use super::pieces::{
    BLANKS, CLOCK_START, CLOCK12_LONG, CLOCK12_TINY, CLOCK24_LONG, CLOCK24_SHORT, COLON, DIGIT,
    DIGITS, FRACTION, HOUR12, HOUR24, HOUR24_PADDED, LETTER, MERIDIAN, MINUTE_PADDED,
    SECOND_PADDED, T,
};
use super::{Field, Meaning, Rule, rule};
use crate::domain::before::pattern::Pattern::{Any, Exact, Maybe, Seq, Text};

const CLOCK12_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Meridian,
];

pub(in super::super) const CLOCK24_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Zone,
];

pub(super) const RULES: &[Rule] = &[
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
];
