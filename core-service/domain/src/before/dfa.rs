//! Compiles the rules of a grammar into one deterministic finite automaton. It finds a token in a
//! single pass, in time linear in the length of the text, regardless of the number of rules.

use super::grammar::{Rule, TokenKind};
use super::nfa::{Nfa, StateId};
use std::collections::BTreeMap;

pub(super) struct Dfa {
    /// The class of each byte. Bytes that no rule distinguishes share a class.
    classes: [u8; 256],
    class_count: usize,
    /// The next state for each state and class, or [`DEAD`].
    next: Vec<u16>,
    /// The token kind accepted in each state.
    accepted: Vec<Option<TokenKind>>,
}

const START: u16 = 0;
const DEAD: u16 = u16::MAX;

/// Represents the end of the text. The text itself does not contain it.
const END: u8 = 0;

impl Dfa {
    /// Of two rules with matches of equal length, the earlier one wins.
    pub(super) fn compile<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let mut nfa = Nfa::default();
        let mut start = Vec::new();
        for (precedence, rule) in rules.into_iter().enumerate() {
            let first = nfa.add_rule(precedence, rule);
            nfa.add_closure(first, &mut start);
        }
        let (classes, class_count) = nfa.byte_classes();
        let transitions = nfa.transitions(&classes);
        let mut states = States::default();
        states.number(start);
        let (mut next, mut accepted) = (Vec::new(), Vec::new());
        // Following the transitions of a state adds further states.
        while let Some(state) = states.found.get(accepted.len()).cloned() {
            accepted.push(nfa.accepted(&state));
            let mut targets = vec![Vec::new(); class_count];
            for transition in state.iter().map(|id| &transitions[*id]) {
                for class in &transition.classes {
                    targets[usize::from(*class)].extend(&transition.targets);
                }
            }
            next.extend(targets.into_iter().map(|state| states.number(state)));
        }
        Self {
            classes,
            class_count,
            next,
            accepted,
        }
    }

    /// The length of the longest match at the start of `text`, and its token kind. The length is
    /// one byte more than that of `text` if the match includes the end of the text.
    pub(super) fn longest_match(&self, text: &[u8]) -> Option<(usize, TokenKind)> {
        let mut state = START;
        let mut longest = None;
        for (index, byte) in text.iter().chain([&END]).enumerate() {
            let class = usize::from(self.classes[usize::from(*byte)]);
            state = self.next[usize::from(state) * self.class_count + class];
            if state == DEAD {
                break;
            }
            if let Some(kind) = self.accepted[usize::from(state)] {
                longest = Some((index + 1, kind));
            }
        }
        longest
    }
}

/// The states in the order of their discovery. Each is a set of NFA states, in ascending order.
#[derive(Default)]
struct States {
    numbers: BTreeMap<Vec<StateId>, u16>,
    found: Vec<Vec<StateId>>,
}

impl States {
    fn number(&mut self, mut state: Vec<StateId>) -> u16 {
        state.sort_unstable();
        state.dedup();
        if state.is_empty() {
            return DEAD;
        }
        let found = &mut self.found;
        *self.numbers.entry(state).or_insert_with_key(|state| {
            found.push(state.clone());
            u16::try_from(found.len() - 1).expect("the grammar has fewer than 65,535 states")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::ByteSet;
    use super::super::pattern::Pattern::{self, AnyCase, Bytes, Exact, Number, Repeat, Seq, Word};
    use super::*;

    const HOUR: Pattern = Number {
        min: 1,
        max: 2,
        from: 0,
        to: 24,
    };

    fn longest(pattern: Pattern, text: &str) -> Option<usize> {
        let kind = TokenKind::Now;
        let dfa = Dfa::compile(&[Rule { kind, pattern }]);
        dfa.longest_match(text.as_bytes()).map(|(length, _)| length)
    }

    #[test]
    fn the_longest_match_wins() {
        const HOUR_THEN_DIGITS: Pattern = Seq(&[
            HOUR,
            Bytes {
                set: ByteSet::range(b'0', b'9'),
                min: 2,
                max: 2,
            },
        ]);

        assert_eq!(longest(HOUR, "24"), Some(2));
        assert_eq!(longest(HOUR, "25"), Some(1));
        assert_eq!(longest(HOUR, "x"), None);
        assert_eq!(longest(HOUR_THEN_DIGITS, "930"), Some(3));
        assert_eq!(longest(HOUR_THEN_DIGITS, "1930"), Some(4));
    }

    #[test]
    fn a_number_matches_by_digits_and_value() {
        let numbers = [
            (1, 2, 0, 31),
            (2, 2, 1, 53),
            (3, 3, 1, 366),
            (1, 2, 13, 31),
            (1, 4, 0, 9999),
        ];
        for (min, max, from, to) in numbers {
            let dfa = Dfa::compile(&[Rule {
                kind: TokenKind::Now,
                pattern: Number { min, max, from, to },
            }]);
            for value in 0..1200 {
                let texts = [1, 2, 3, 4].map(|width| format!("{value:0width$}"));
                for text in texts {
                    let longest = (min.into()..=usize::from(max).min(text.len()))
                        .rfind(|end| (from..=to).contains(&text[..*end].parse().unwrap()));
                    let found = dfa.longest_match(text.as_bytes());
                    assert_eq!(found.map(|(length, _)| length), longest, "{text}");
                }
            }
        }
    }

    #[test]
    fn of_two_equally_long_matches_the_earlier_rule_wins() {
        let dfa = Dfa::compile(
            &[
                (TokenKind::Now, AnyCase("ab")),
                (TokenKind::Noon, Exact("ab")),
                (TokenKind::Ago, Exact("abc")),
            ]
            .map(|(kind, pattern)| Rule { kind, pattern }),
        );

        assert_eq!(dfa.longest_match(b"ab"), Some((2, TokenKind::Now)));
        assert_eq!(dfa.longest_match(b"ABC"), Some((2, TokenKind::Now)));
        assert_eq!(dfa.longest_match(b"abc"), Some((3, TokenKind::Ago)));
    }

    #[test]
    fn words_with_non_ascii_letters_match() {
        assert_eq!(longest(Word(&[&["day"], &["µs"]]), "µs!"), Some(3));
        assert_eq!(longest(AnyCase("µs"), "µS"), Some(3));
        assert_eq!(longest(Exact("µs"), "µS"), None);
    }

    #[test]
    fn the_end_of_the_text_matches_only_once() {
        const SPACE_OR_END: Pattern = Bytes {
            set: ByteSet::of(b"\0 "),
            min: 1,
            max: 1,
        };

        assert_eq!(longest(Repeat(&SPACE_OR_END), "  "), Some(3));
        assert_eq!(longest(Repeat(&SPACE_OR_END), "x"), None);
    }

    #[test]
    fn repeats_can_be_nested() {
        const INNER: Pattern = Repeat(&Bytes {
            set: ByteSet::range(b'0', b'9'),
            min: 1,
            max: Pattern::UNLIMITED,
        });
        const NESTED: Pattern = Seq(&[Repeat(&INNER), Exact("!")]);

        assert_eq!(longest(NESTED, &"1".repeat(120)), None);
        assert_eq!(longest(NESTED, "123!"), Some(4));
    }
}
