//! Times of day.

use super::pieces::{
    BLANKS, CLOCK12_LONG, CLOCK12_TINY, CLOCK24_LONG, CLOCK24_SHORT, COLON, DIGITS, FRACTION,
    HOUR12, HOUR24, HOUR24_PADDED, MERIDIAN, MINUTE_PADDED, SECOND_PADDED, T,
};
use super::{Field, Meaning, Rule, rule};
use crate::before::pattern::Pattern::{Any, Exact, Maybe, Seq, Text};

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
        Seq(&[
            Any(&[Text("back of "), Text("front of ")]),
            HOUR24,
            Maybe(&Seq(&[Maybe(&BLANKS), MERIDIAN])),
        ]),
    ),
    rule(
        Meaning::Fields(CLOCK12_FIELDS),
        Any(&[CLOCK12_TINY, CLOCK12_LONG]),
    ),
    rule(
        Meaning::Fields(CLOCK12_FIELDS),
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
        Any(&[
            Seq(&[Text("t"), HOUR24]),
            CLOCK24_SHORT,
            Seq(&[CLOCK24_LONG, Maybe(&FRACTION)]),
        ]),
    ),
    rule(
        Meaning::ClockOrYear,
        Seq(&[T, HOUR24_PADDED, MINUTE_PADDED]),
    ),
    rule(
        Meaning::Fields(CLOCK24_FIELDS),
        Seq(&[T, HOUR24_PADDED, MINUTE_PADDED, SECOND_PADDED]),
    ),
];
