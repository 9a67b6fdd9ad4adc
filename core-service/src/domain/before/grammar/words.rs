//! Days, distances and zones.

use super::pieces::{
    BLANK, BLANKS, COUNT, DIGIT, DIGITS, LETTER, ORDINAL, SIGN, WEEKDAY, ZONE, one,
};
use super::{Meaning, Rule, rule};
use crate::domain::before::pattern::ByteSet;
use crate::domain::before::pattern::Pattern::{Any, Bytes, Exact, Maybe, Seq, Text, Word};
use crate::domain::before::words::{DEICTICS, MONTHS, UNITS, WEEK, WEEKDAYS};

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
                Bytes {
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
        Meaning::WeekdayOfMonth,
        LETTER,
        Seq(&[ORDINAL, BLANKS, Word(WEEKDAYS), BLANKS, Text("of")]),
    ),
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
