//! Words for days and times, Unix timestamps, relative offsets, zones and separators.

use super::fragments::{AMOUNT, DIGIT, DIGITS, ORDINAL, SPACES, WEEKDAY, ZONE, one};
use super::rule::{Rule, TokenKind, rule};
use crate::before::pattern::ByteSet;
use crate::before::pattern::Pattern::{Any, Bytes, Exact, Optional, Seq, Text, Word};
use crate::before::word_tables::{MONTHS, RELATIVE_WORDS, UNITS, WEEK, WEEKDAYS};

pub(super) const RULES: &[Rule] = &[
    rule(TokenKind::Yesterday, Text("yesterday")),
    rule(TokenKind::Now, Text("now")),
    rule(TokenKind::Noon, Text("noon")),
    rule(TokenKind::Midnight, Text("midnight")),
    rule(TokenKind::Today, Text("today")),
    rule(TokenKind::Tomorrow, Text("tomorrow")),
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
        Any(&[Text("first day of"), Text("last day of")]),
    ),
    rule(
        TokenKind::WeekdayOfMonth,
        Seq(&[ORDINAL, SPACES, Word(WEEKDAYS), SPACES, Text("of")]),
    ),
    rule(TokenKind::Ago, Text("ago")),
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
