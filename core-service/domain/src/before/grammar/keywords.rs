//! Words for days and times, Unix timestamps, relative offsets, zones and separators.

use super::fragments::{AMOUNT, DIGIT, DIGITS, ORDINAL, SPACES, WEEKDAY, ZONE, one};
use super::rule::{Rule, TokenKind, rule};
use crate::before::pattern::ByteSet;
use crate::before::pattern::Pattern::{Any, AnyCase, Bytes, Exact, Optional, Seq, Word};
use crate::before::word_tables::{MONTHS, RELATIVE_WORDS, UNITS, WEEK, WEEKDAYS};

pub(super) const RULES: &[Rule] = &[
    rule(TokenKind::Yesterday, AnyCase("yesterday")),
    rule(TokenKind::Now, AnyCase("now")),
    rule(TokenKind::Noon, AnyCase("noon")),
    rule(TokenKind::Midnight, AnyCase("midnight")),
    rule(TokenKind::Today, AnyCase("today")),
    rule(TokenKind::Tomorrow, AnyCase("tomorrow")),
    rule(
        TokenKind::Timestamp,
        Seq(&[
            Exact("@"),
            Optional(&Exact("-")),
            DIGITS,
            Optional(&Seq(&[
                Exact("."),
                Bytes {
                    set: DIGIT,
                    min: 0,
                    max: 6,
                },
            ])),
        ]),
    ),
    rule(
        TokenKind::MonthBoundary,
        Any(&[AnyCase("first day of"), AnyCase("last day of")]),
    ),
    rule(
        TokenKind::WeekdayOfMonth,
        Seq(&[ORDINAL, SPACES, Word(WEEKDAYS), SPACES, AnyCase("of")]),
    ),
    rule(TokenKind::Ago, AnyCase("ago")),
    rule(TokenKind::Weekday, WEEKDAY),
    rule(
        TokenKind::CalendarWeek,
        Seq(&[Word(RELATIVE_WORDS), SPACES, Word(WEEK)]),
    ),
    rule(
        TokenKind::OrdinalUnit,
        Seq(&[ORDINAL, SPACES, Any(&[Word(UNITS), WEEKDAY])]),
    ),
    rule(TokenKind::Month, Word(MONTHS)),
    rule(TokenKind::Zone, ZONE),
    rule(
        TokenKind::Amount,
        Seq(&[
            AMOUNT,
            Optional(&SPACES),
            Any(&[Word(UNITS), Word(WEEK), WEEKDAY]),
        ]),
    ),
    rule(
        TokenKind::Separator,
        Any(&[SPACES, one(ByteSet::of(b".,\n"))]),
    ),
];
