//! Times of day.

use super::fragments::{
    COLON, DIGITS, FRACTION, HOUR12, HOUR24, HOUR24_PADDED, MERIDIAN, MINUTE_PADDED, OPTIONAL_T,
    SECOND_PADDED, SPACES, TIME12, TIME12_HOUR, TIME24_MINUTES, TIME24_SECONDS,
};
use super::rule::{Field, Rule, TokenKind, rule};
use crate::before::pattern::Pattern::{Any, Exact, Maybe, Seq, Text};

const TIME12_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Meridian,
];

pub(in crate::before) const TIME24_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Zone,
];

pub(super) const RULES: &[Rule] = &[
    rule(
        TokenKind::QuarterHour,
        Seq(&[
            Any(&[Text("back of "), Text("front of ")]),
            HOUR24,
            Maybe(&Seq(&[Maybe(&SPACES), MERIDIAN])),
        ]),
    ),
    rule(
        TokenKind::Fields(TIME12_FIELDS),
        Any(&[TIME12_HOUR, TIME12]),
    ),
    rule(
        TokenKind::Fields(TIME12_FIELDS),
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
        TokenKind::Fields(TIME24_FIELDS),
        Any(&[
            Seq(&[Text("t"), HOUR24]),
            TIME24_MINUTES,
            Seq(&[TIME24_SECONDS, Maybe(&FRACTION)]),
        ]),
    ),
    rule(
        TokenKind::TimeOrYear,
        Seq(&[OPTIONAL_T, HOUR24_PADDED, MINUTE_PADDED]),
    ),
    rule(
        TokenKind::Fields(TIME24_FIELDS),
        Seq(&[OPTIONAL_T, HOUR24_PADDED, MINUTE_PADDED, SECOND_PADDED]),
    ),
];
