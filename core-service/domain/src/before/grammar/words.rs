//! Days, distances and zones.

use super::pieces::{BLANKS, COUNT, DIGIT, DIGITS, ORDINAL, WEEKDAY, ZONE, one};
use super::{Meaning, Rule, rule};
use crate::before::pattern::ByteSet;
use crate::before::pattern::Pattern::{Any, Bytes, Exact, Maybe, Seq, Text, Word};
use crate::before::words::{DEICTICS, MONTHS, UNITS, WEEK, WEEKDAYS};

pub(super) const RULES: &[Rule] = &[
    rule(Meaning::Yesterday, Text("yesterday")),
    rule(Meaning::Now, Text("now")),
    rule(Meaning::Noon, Text("noon")),
    rule(Meaning::Midnight, Text("midnight")),
    rule(Meaning::Today, Text("today")),
    rule(Meaning::Tomorrow, Text("tomorrow")),
    rule(
        Meaning::Timestamp,
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
        Any(&[Text("first day of"), Text("last day of")]),
    ),
    rule(
        Meaning::WeekdayOfMonth,
        Seq(&[ORDINAL, BLANKS, Word(WEEKDAYS), BLANKS, Text("of")]),
    ),
    rule(Meaning::Ago, Text("ago")),
    rule(Meaning::Weekday, WEEKDAY),
    rule(
        Meaning::WeekOfCalendar,
        Seq(&[Word(DEICTICS), BLANKS, Word(WEEK)]),
    ),
    rule(
        Meaning::Next,
        Seq(&[ORDINAL, BLANKS, Any(&[Word(UNITS), WEEKDAY])]),
    ),
    rule(Meaning::Month, Word(MONTHS)),
    rule(Meaning::Zone, ZONE),
    rule(
        Meaning::Amount,
        Seq(&[
            COUNT,
            Maybe(&BLANKS),
            Any(&[Word(UNITS), Word(WEEK), WEEKDAY]),
        ]),
    ),
    rule(Meaning::Blank, Any(&[BLANKS, one(ByteSet::of(b".,\n"))])),
];
