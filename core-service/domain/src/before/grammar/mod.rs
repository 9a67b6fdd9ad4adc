//! The strict grammar, that of PHP's `strtotime`. At each position of a text the rule with the longest
//! match wins; of two matches of equal length, the earlier rule.

mod rules;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::{primitives::StateID, syntax};
use regex_automata::{Anchored, MatchKind};
use rules::{Fragments, RULES};
use std::sync::LazyLock;

/// The byte that the automaton reads after the text, so that rules can match the end.
/// `ParsedTime::parse` rejects texts that contain it.
const END: u8 = 0;

/// The compiled rules, and the state in which each search starts.
static AUTOMATON: LazyLock<(dense::DFA<Vec<u32>>, StateID)> =
    LazyLock::new(|| compile().expect("the rules are regular expressions without assertions"));

/// All rules in one automaton, which finds a token in a single pass. It supports anchored searches
/// only: others would need so many states that compilation would take minutes.
fn compile() -> Option<(dense::DFA<Vec<u32>>, StateID)> {
    let fragments = Fragments::new();
    let expressions: Vec<_> = RULES
        .iter()
        .map(|(_, expression)| fragments.expand(expression))
        .collect();
    let automaton = dense::Builder::new()
        .configure(
            dense::Config::new()
                .match_kind(MatchKind::All)
                .start_kind(StartKind::Anchored),
        )
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build_many(&expressions)
        .ok()?;
    let start = automaton.universal_start_state(Anchored::Yes)?;
    Some((automaton, start))
}

/// The length of the longest match at the start of `text`, and its token kind. The length is
/// one byte more than that of `text` if the match includes the end of the text.
pub(super) fn longest_match(text: &[u8]) -> Option<(usize, TokenKind)> {
    let (automaton, start) = &*AUTOMATON;
    let mut longest = None;
    let mut note_match = |state, length| {
        // The patterns of a state are in ascending order.
        if automaton.is_match_state(state) {
            longest = Some((length, RULES[automaton.match_pattern(state, 0)].0));
        }
    };
    let mut state = *start;
    for (length, byte) in text.iter().chain([&END]).enumerate() {
        state = automaton.next_state(state, *byte);
        if automaton.is_dead_state(state) {
            return longest;
        }
        // The automaton is one byte late: its match ends before this byte.
        note_match(state, length);
    }
    note_match(automaton.next_eoi_state(state), text.len() + 1);
    longest
}

/// What a token means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TokenKind {
    Separator,
    Now,
    /// `yesterday`, `today` or `tomorrow`: its days from today.
    Day(i64),
    Noon,
    Midnight,
    Timestamp,
    /// `first day of`, `last day of`.
    MonthBoundary,
    /// `back of 10`, `front of 10`: a quarter past, a quarter to.
    QuarterHour,
    /// `first monday of`.
    WeekdayOfMonth,
    /// A date, a time or both, written in this order.
    Fields(&'static [Field]),
    /// Two or three numbers with slashes, hyphens or dots: a date, or a time of day.
    Numbers,
    /// A time of day or a year.
    FourDigits,
    Ago,
    Weekday,
    /// `this week`, `next week`.
    CalendarWeek,
    /// `next month`, `third day`, `last friday`.
    OrdinalUnit,
    /// `+2 hours`, `3 weekdays`.
    Amount,
    Month,
    TimeZone,
}

impl TokenKind {
    /// Whether it is a day or a duration, not a time of day, and not numbers that may be one.
    pub(super) fn is_day(self) -> bool {
        match self {
            Self::Now
            | Self::Day(_)
            | Self::Timestamp
            | Self::MonthBoundary
            | Self::WeekdayOfMonth
            | Self::Weekday
            | Self::CalendarWeek
            | Self::OrdinalUnit
            | Self::Amount
            | Self::Month => true,
            Self::Fields(fields) => {
                fields.contains(&Field::Year) || fields.contains(&Field::MonthName)
            }
            _ => false,
        }
    }
}

/// One number or word of a date or time. The fields of a time after the hour are optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Field {
    Year,
    Month,
    MonthName,
    Day,
    /// Not in the text: sets the day to 1.
    FirstOfMonth,
    DayOfYear,
    Week,
    DayOfWeek,
    Hour,
    Minute,
    Second,
    Fraction,
    Meridiem,
    TimeZone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(longest_match(b"second"), Some((6, TokenKind::TimeZone)));
        assert_eq!(
            longest_match(b"second day"),
            Some((10, TokenKind::OrdinalUnit))
        );
        assert_eq!(longest_match(b"?"), None);
    }

    #[test]
    fn of_two_equally_long_matches_the_earlier_rule_wins() {
        assert_eq!(longest_match(b"MAY"), Some((3, TokenKind::Month)));
        assert_eq!(longest_match(b"xyz"), Some((3, TokenKind::TimeZone)));
        assert_eq!(longest_match(b"2026"), Some((4, TokenKind::FourDigits)));
        assert_eq!(longest_match(b"2699"), Some((4, TokenKind::FourDigits)));
    }

    #[test]
    fn a_match_may_include_the_end_of_the_text() {
        assert_eq!(
            longest_match(b"back of 7pm"),
            Some((12, TokenKind::QuarterHour))
        );
        assert_eq!(
            longest_match(b"back of 7pm,"),
            Some((9, TokenKind::QuarterHour))
        );
    }

    #[test]
    fn words_with_non_ascii_letters_match() {
        assert_eq!(
            longest_match("3 \u{b5}S!".as_bytes()),
            Some((5, TokenKind::Amount))
        );
        assert_eq!(longest_match("3 \u{39c}s".as_bytes()), None);
    }
}
