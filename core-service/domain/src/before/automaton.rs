//! The rules of a grammar as one automaton. A byte leads from one state to the next, however many
//! rules there are, so a token is found in one pass: no text is a slow one.

use super::grammar::{Meaning, Rule};
use super::pattern::{ByteSet, Pattern};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A deterministic automaton, made by following all rules at once.
pub(super) struct Automaton {
    /// Bytes that no rule tells apart are of one class.
    classes: [u8; 256],
    /// How many classes there are.
    width: usize,
    /// The state after each state and class; [`DEAD`] if no rule goes on.
    next: Vec<u16>,
    /// What the bytes up to each state mean, if a rule ends there.
    meanings: Vec<Option<Meaning>>,
}

const START: u16 = 0;
const DEAD: u16 = u16::MAX;

/// Stands for the end of the text, in which it does not occur.
const END: u8 = 0;

impl Automaton {
    /// Of two rules that match as much, the earlier one wins.
    pub(super) fn of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let mut steps = Steps::default();
        let mut first = State::new();
        for (precedence, rule) in rules.into_iter().enumerate() {
            let end = steps.add(Step::End(precedence, rule.meaning));
            let start = steps.through(&rule.pattern, end);
            steps.reach(start, &mut first);
        }
        let (classes, width) = steps.classes();
        let ways = steps.ways(&classes);
        let mut states = States::default();
        states.number(first);
        let (mut next, mut meanings) = (Vec::new(), Vec::new());
        // Following a state finds others, until none is new.
        while let Some(state) = states.found.get(meanings.len()).cloned() {
            meanings.push(steps.meaning(&state));
            let mut after = vec![State::new(); width];
            for way in state.iter().map(|step| &ways[*step]) {
                for class in &way.classes {
                    after[usize::from(*class)].extend(&way.to);
                }
            }
            next.extend(after.into_iter().map(|state| states.number(state)));
        }
        Self {
            classes,
            width,
            next,
            meanings,
        }
    }

    /// How many bytes of `text` the longest match takes, from its beginning, and what it means. One
    /// more than there are if the end of the text is part of the match.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, Meaning)> {
        let mut state = START;
        let mut longest = None;
        for (at, byte) in text.iter().chain([&END]).enumerate() {
            let class = usize::from(self.classes[usize::from(*byte)]);
            state = self.next[usize::from(state) * self.width + class];
            if state == DEAD {
                break;
            }
            if let Some(meaning) = self.meanings[usize::from(state)] {
                longest = Some((at + 1, meaning));
            }
        }
        longest
    }
}

/// A state of the automaton: all the steps that can be next, in ascending order.
type State = Vec<usize>;

/// The states in the order of their discovery.
#[derive(Default)]
struct States {
    numbers: BTreeMap<State, u16>,
    found: Vec<State>,
}

impl States {
    fn number(&mut self, mut state: State) -> u16 {
        state.sort_unstable();
        state.dedup();
        if state.is_empty() {
            return DEAD;
        }
        let found = &mut self.found;
        *self.numbers.entry(state).or_insert_with_key(|state| {
            found.push(state.clone());
            u16::try_from(found.len() - 1).expect("a grammar of so many rules has few states")
        })
    }
}

/// One step through a rule, and which one comes next.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Take(ByteSet, usize),
    Either(usize, usize),
    /// The end of a rule; the smallest number has precedence.
    End(usize, Meaning),
}

impl Step {
    fn bytes(&self) -> Option<ByteSet> {
        match self {
            Self::Take(bytes, _) => Some(*bytes),
            Self::Either(..) | Self::End(..) => None,
        }
    }
}

/// Where a step leads: behind bytes of these classes, all the steps that can be next.
#[derive(Default)]
struct Way {
    classes: Vec<u8>,
    to: State,
}

/// The steps through all rules. Equal ones are one: words with the same ending share it.
#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    known: HashMap<Step, usize>,
}

impl Steps {
    fn add(&mut self, step: Step) -> usize {
        *self.known.entry(step).or_insert_with(|| {
            self.all.push(step);
            self.all.len() - 1
        })
    }

    fn take(&mut self, bytes: ByteSet, then: usize) -> usize {
        self.add(Step::Take(bytes, then))
    }

    fn either(&mut self, one: usize, other: usize) -> usize {
        self.add(Step::Either(one, other))
    }

    /// The first step through a pattern that leads to `then`. Patterns are walked from their ends,
    /// as each step must know the next.
    fn through(&mut self, pattern: &Pattern, then: usize) -> usize {
        match pattern {
            Pattern::Bytes { of, min, max } => self.bytes(*of, (*min, *max), then),
            Pattern::Number { min, max, from, to } => self
                .any_of((*min..=*max).collect(), |steps, width| {
                    steps.number(width, ((*from).into(), (*to).into()), then)
                }),
            Pattern::Text(text) => text.bytes().rev().fold(then, |then, byte| {
                let cases = [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
                self.take(ByteSet::of(&cases), then)
            }),
            Pattern::Exact(text) => text
                .bytes()
                .rev()
                .fold(then, |then, byte| self.take(ByteSet::of(&[byte]), then)),
            Pattern::Word(table) => self
                .any_of(table.iter().copied().flatten().collect(), |steps, word| {
                    steps.through(&Pattern::Text(word), then)
                }),
            Pattern::Seq(parts) => parts
                .iter()
                .rev()
                .fold(then, |then, part| self.through(part, then)),
            Pattern::Any(choices) => self.any_of(choices.iter().collect(), |steps, choice| {
                steps.through(choice, then)
            }),
            Pattern::Maybe(part) => {
                let with = self.through(part, then);
                self.either(with, then)
            }
            Pattern::Repeat(part) => self.repeated(then, |steps, again| steps.through(part, again)),
        }
    }

    /// A step to each of several ways.
    fn any_of<T>(&mut self, ways: Vec<T>, first: impl Fn(&mut Self, T) -> usize) -> usize {
        let nothing = self.take(ByteSet::EMPTY, 0);
        ways.into_iter().fold(nothing, |others, way| {
            let way = first(self, way);
            self.either(way, others)
        })
    }

    fn bytes(&mut self, of: ByteSet, (min, max): (u8, u8), then: usize) -> usize {
        let rest = if max == Pattern::MANY {
            let more = self.repeated(then, |steps, again| steps.take(of, again));
            self.either(more, then)
        } else {
            (min..max).fold(then, |fewer, _| {
                let one = self.take(of, fewer);
                self.either(one, then)
            })
        };
        (0..min).fold(rest, |then, _| self.take(of, then))
    }

    /// Once or more what `part` puts before the step it is given.
    fn repeated(&mut self, then: usize, part: impl FnOnce(&mut Self, usize) -> usize) -> usize {
        let again = self.all.len();
        // Where it leads is not known yet, so no other may be taken for its equal.
        self.all.push(Step::Either(then, then));
        let first = part(self, again);
        self.all[again] = Step::Either(first, then);
        first
    }

    /// A number of exactly so many digits, within its bounds.
    fn number(&mut self, width: u8, (from, to): (u32, u32), then: usize) -> usize {
        let Some(rest) = width.checked_sub(1) else {
            return then;
        };
        let unit = 10_u32.pow(rest.into());
        // Digits that leave the same bounds for those behind them go the same way.
        let mut digits = BTreeMap::<_, ByteSet>::new();
        for digit in b'0'..=b'9' {
            let lowest = u32::from(digit - b'0') * unit;
            if lowest <= to && lowest + unit > from {
                let bounds = (from.saturating_sub(lowest), (to - lowest).min(unit - 1));
                let same = digits.entry(bounds).or_insert(ByteSet::EMPTY);
                *same = same.and(ByteSet::of(&[digit]));
            }
        }
        self.any_of(digits.into_iter().collect(), |steps, (bounds, digits)| {
            let then = steps.number(rest, bounds, then);
            steps.take(digits, then)
        })
    }

    /// The class of each byte, and how many there are.
    fn classes(&self) -> ([u8; 256], usize) {
        let sets: HashSet<_> = self.all.iter().filter_map(Step::bytes).collect();
        let mut classes = [0; 256];
        let mut numbers = HashMap::<Vec<bool>, u8>::new();
        for byte in 0..=u8::MAX {
            let told_by = sets.iter().map(|set| set.contains(byte)).collect();
            let fresh = u8::try_from(numbers.len()).expect("there is one for each byte at most");
            classes[usize::from(byte)] = *numbers.entry(told_by).or_insert(fresh);
        }
        (classes, numbers.len())
    }

    /// Where each step leads.
    fn ways(&self, classes: &[u8; 256]) -> Vec<Way> {
        let way = |step: &Step| {
            let mut way = Way::default();
            if let Step::Take(bytes, then) = step {
                let bytes = (0..=u8::MAX).filter(|byte| bytes.contains(*byte));
                way.classes = bytes.map(|byte| classes[usize::from(byte)]).collect();
                way.classes.sort_unstable();
                way.classes.dedup();
                self.reach(*then, &mut way.to);
            }
            way
        };
        self.all.iter().map(way).collect()
    }

    /// Adds the steps that wait for a byte, or end a rule, on all ways from `step`.
    fn reach(&self, step: usize, state: &mut State) {
        if let Step::Either(one, other) = self.all[step] {
            self.reach(one, state);
            self.reach(other, state);
        } else {
            state.push(step);
        }
    }

    fn meaning(&self, state: &State) -> Option<Meaning> {
        let ends = state.iter().filter_map(|step| match self.all[*step] {
            Step::End(precedence, meaning) => Some((precedence, meaning)),
            Step::Take(..) | Step::Either(..) => None,
        });
        ends.min_by_key(|(precedence, _)| *precedence)
            .map(|(_, meaning)| meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern::{Bytes, Exact, Number, Repeat, Seq, Text, Word};
    use super::*;

    const HOUR: Pattern = Number {
        min: 1,
        max: 2,
        from: 0,
        to: 24,
    };

    fn longest(pattern: Pattern, text: &str) -> Option<usize> {
        let meaning = Meaning::Now;
        let automaton = Automaton::of(&[Rule { meaning, pattern }]);
        automaton.longest(text.as_bytes()).map(|(length, _)| length)
    }

    #[test]
    fn the_longest_way_wins() {
        const HOUR_THEN_DIGITS: Pattern = Seq(&[
            HOUR,
            Bytes {
                of: ByteSet::range(b'0', b'9'),
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
    fn a_number_has_its_digits_and_lies_within_its_bounds() {
        let numbers = [
            (1, 2, 0, 31),
            (2, 2, 1, 53),
            (3, 3, 1, 366),
            (1, 2, 13, 31),
            (1, 4, 0, 9999),
        ];
        for (min, max, from, to) in numbers {
            let automaton = Automaton::of(&[Rule {
                meaning: Meaning::Now,
                pattern: Number { min, max, from, to },
            }]);
            for value in 0..1200 {
                let texts = [1, 2, 3, 4].map(|width| format!("{value:0width$}"));
                for text in texts {
                    let longest = (min.into()..=usize::from(max).min(text.len()))
                        .rfind(|end| (from..=to).contains(&text[..*end].parse().unwrap()));
                    let found = automaton.longest(text.as_bytes());
                    assert_eq!(found.map(|(length, _)| length), longest, "{text}");
                }
            }
        }
    }

    #[test]
    fn of_two_rules_that_match_as_much_the_earlier_one_wins() {
        let automaton = Automaton::of(
            &[
                (Meaning::Now, Text("ab")),
                (Meaning::Noon, Exact("ab")),
                (Meaning::Ago, Exact("abc")),
            ]
            .map(|(meaning, pattern)| Rule { meaning, pattern }),
        );

        assert_eq!(automaton.longest(b"ab"), Some((2, Meaning::Now)));
        assert_eq!(automaton.longest(b"ABC"), Some((2, Meaning::Now)));
        assert_eq!(automaton.longest(b"abc"), Some((3, Meaning::Ago)));
    }

    #[test]
    fn words_beyond_ascii_are_words() {
        assert_eq!(longest(Word(&[&["day"], &["µs"]]), "µs!"), Some(3));
        assert_eq!(longest(Text("µs"), "µS"), Some(3));
        assert_eq!(longest(Exact("µs"), "µS"), None);
    }

    #[test]
    fn the_end_of_the_text_matches_once() {
        const BLANK_OR_END: Pattern = Bytes {
            of: ByteSet::of(b"\0 "),
            min: 1,
            max: 1,
        };

        assert_eq!(longest(Repeat(&BLANK_OR_END), "  "), Some(3));
        assert_eq!(longest(Repeat(&BLANK_OR_END), "x"), None);
    }

    #[test]
    fn repeats_may_be_repeated() {
        const INNER: Pattern = Repeat(&Bytes {
            of: ByteSet::range(b'0', b'9'),
            min: 1,
            max: Pattern::MANY,
        });
        const NESTED: Pattern = Seq(&[Repeat(&INNER), Exact("!")]);

        assert_eq!(longest(NESTED, &"1".repeat(120)), None);
        assert_eq!(longest(NESTED, "123!"), Some(4));
    }
}
