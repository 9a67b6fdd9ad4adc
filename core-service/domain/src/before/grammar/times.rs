//! Times of day.

use super::fragments::{
    COLON_OR_POINT, DIGITS, FRACTION, HOUR12, HOUR24, HOUR24_PADDED, MERIDIEM, MINUTE_PADDED,
    OPTIONAL_T, SECOND_PADDED, SPACES, TIME12, TIME12_HOUR, TIME24_MINUTES, TIME24_SECONDS,
};
use super::rule::{Field, Rule, TokenKind, rule};
use crate::before::pattern::Pattern::{Any, AnyCase, Exact, Optional, Seq};

const TIME12_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Meridiem,
];

const TIME24_FIELDS: &[Field] = &[
    Field::Hour,
    Field::Minute,
    Field::Second,
    Field::Fraction,
    Field::Zone,
];

pub(super) const RULES: &[Rule] = &[
    // `back of 7pm` is 19:15, `front of 7pm` is 18:45.
    rule(
        TokenKind::QuarterHour,
        Seq(&[
            Any(&[AnyCase("back of "), AnyCase("front of ")]),
            HOUR24,
            Optional(&Seq(&[Optional(&SPACES), MERIDIEM])),
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
            COLON_OR_POINT,
            DIGITS,
            MERIDIEM,
        ]),
    ),
    rule(
        TokenKind::Fields(TIME24_FIELDS),
        Any(&[
            Seq(&[AnyCase("t"), HOUR24]),
            TIME24_MINUTES,
            Seq(&[TIME24_SECONDS, Optional(&FRACTION)]),
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
