//! Compiles patterns into a nondeterministic finite automaton.

use super::grammar::{Rule, TokenKind};
use super::pattern::{ByteSet, Pattern};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The index of an [`NfaState`].
pub(super) type StateId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum NfaState {
    /// One byte of the set leads to the next state.
    Byte(ByteSet, StateId),
    /// Leads to both states without consuming a byte.
    Split(StateId, StateId),
    /// The end of a rule; the lowest number takes precedence.
    Accept(usize, TokenKind),
}

/// The transition out of a state: a byte of these classes leads to these states.
#[derive(Default)]
pub(super) struct Transition {
    pub(super) classes: Vec<u8>,
    pub(super) targets: Vec<StateId>,
}

/// The states of all rules. Equal states are shared, as by words with the same ending.
#[derive(Default)]
pub(super) struct Nfa {
    states: Vec<NfaState>,
    ids: HashMap<NfaState, StateId>,
}

impl Nfa {
    /// Compiles a rule, and returns its first state.
    pub(super) fn add_rule(&mut self, precedence: usize, rule: &Rule) -> StateId {
        let accept = self.add(NfaState::Accept(precedence, rule.kind));
        self.compile(&rule.pattern, accept)
    }

    /// The class of each byte, and the number of classes. Two bytes are in the same class if no
    /// rule distinguishes them.
    pub(super) fn byte_classes(&self) -> ([u8; 256], usize) {
        let sets: HashSet<_> = self
            .states
            .iter()
            .filter_map(|state| match state {
                NfaState::Byte(bytes, _) => Some(*bytes),
                NfaState::Split(..) | NfaState::Accept(..) => None,
            })
            .collect();
        let mut classes = [0; 256];
        let mut numbers = HashMap::<Vec<bool>, u8>::new();
        for byte in 0..=u8::MAX {
            let membership = sets.iter().map(|set| set.contains(byte)).collect();
            let next = u8::try_from(numbers.len()).expect("there are at most 256 classes");
            classes[usize::from(byte)] = *numbers.entry(membership).or_insert(next);
        }
        (classes, numbers.len())
    }

    /// The transition out of each state.
    pub(super) fn transitions(&self, classes: &[u8; 256]) -> Vec<Transition> {
        let transition = |state: &NfaState| {
            let mut transition = Transition::default();
            if let NfaState::Byte(bytes, next) = state {
                let bytes = (0..=u8::MAX).filter(|byte| bytes.contains(*byte));
                transition.classes = bytes.map(|byte| classes[usize::from(byte)]).collect();
                transition.classes.sort_unstable();
                transition.classes.dedup();
                self.add_closure(*next, &mut transition.targets);
            }
            transition
        };
        self.states.iter().map(transition).collect()
    }

    /// Adds to `states` those that are reachable from `id` without consuming a byte.
    pub(super) fn add_closure(&self, id: StateId, states: &mut Vec<StateId>) {
        if let NfaState::Split(one, other) = self.states[id] {
            self.add_closure(one, states);
            self.add_closure(other, states);
        } else {
            states.push(id);
        }
    }

    /// The token kind of the rule that ends in one of these states. The earliest rule wins.
    pub(super) fn accepted(&self, states: &[StateId]) -> Option<TokenKind> {
        let accepted = states.iter().filter_map(|id| match self.states[*id] {
            NfaState::Accept(precedence, kind) => Some((precedence, kind)),
            NfaState::Byte(..) | NfaState::Split(..) => None,
        });
        accepted
            .min_by_key(|(precedence, _)| *precedence)
            .map(|(_, kind)| kind)
    }

    fn add(&mut self, state: NfaState) -> StateId {
        *self.ids.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() - 1
        })
    }

    fn byte(&mut self, bytes: ByteSet, next: StateId) -> StateId {
        self.add(NfaState::Byte(bytes, next))
    }

    fn split(&mut self, one: StateId, other: StateId) -> StateId {
        self.add(NfaState::Split(one, other))
    }

    /// Compiles a pattern, and returns its first state; a match leads to `next`. Patterns are
    /// compiled from their end, as each state refers to the next.
    fn compile(&mut self, pattern: &Pattern, next: StateId) -> StateId {
        match pattern {
            Pattern::Bytes { set, min, max } => self.bytes(*set, (*min, *max), next),
            Pattern::Number { min, max, from, to } => self
                .any_of((*min..=*max).collect(), |nfa, width| {
                    nfa.number(width, ((*from).into(), (*to).into()), next)
                }),
            Pattern::AnyCase(text) => text.bytes().rev().fold(next, |next, byte| {
                let cases = [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
                self.byte(ByteSet::of(&cases), next)
            }),
            Pattern::Exact(text) => text
                .bytes()
                .rev()
                .fold(next, |next, byte| self.byte(ByteSet::of(&[byte]), next)),
            Pattern::Word(table) => self
                .any_of(table.iter().copied().flatten().collect(), |nfa, word| {
                    nfa.compile(&Pattern::AnyCase(word), next)
                }),
            Pattern::Seq(parts) => parts
                .iter()
                .rev()
                .fold(next, |next, part| self.compile(part, next)),
            Pattern::Any(choices) => self.any_of(choices.iter().collect(), |nfa, choice| {
                nfa.compile(choice, next)
            }),
            Pattern::Optional(part) => {
                let first = self.compile(part, next);
                self.split(first, next)
            }
            Pattern::Repeat(part) => self.repeat(next, |nfa, again| nfa.compile(part, again)),
        }
    }

    /// Compiles alternatives, and returns the state that leads to the first state of each.
    fn any_of<T>(
        &mut self,
        alternatives: Vec<T>,
        compile: impl Fn(&mut Self, T) -> StateId,
    ) -> StateId {
        let no_match = self.byte(ByteSet::EMPTY, 0);
        alternatives
            .into_iter()
            .fold(no_match, |others, alternative| {
                let alternative = compile(self, alternative);
                self.split(alternative, others)
            })
    }

    fn bytes(&mut self, set: ByteSet, (min, max): (u8, u8), next: StateId) -> StateId {
        let optional = if max == Pattern::UNLIMITED {
            let more = self.repeat(next, |nfa, again| nfa.byte(set, again));
            self.split(more, next)
        } else {
            (min..max).fold(next, |fewer, _| {
                let one = self.byte(set, fewer);
                self.split(one, next)
            })
        };
        (0..min).fold(optional, |next, _| self.byte(set, next))
    }

    /// Repeats a part once or more. `part` compiles it so that a match leads to the given state.
    fn repeat(
        &mut self,
        next: StateId,
        part: impl FnOnce(&mut Self, StateId) -> StateId,
    ) -> StateId {
        let again = self.states.len();
        // Not in `ids`: its targets change below, so no equal state may share it.
        self.states.push(NfaState::Split(next, next));
        let first = part(self, again);
        self.states[again] = NfaState::Split(first, next);
        first
    }

    /// Compiles a number of exactly `width` digits, between `from` and `to`.
    fn number(&mut self, width: u8, (from, to): (u32, u32), next: StateId) -> StateId {
        let Some(remaining) = width.checked_sub(1) else {
            return next;
        };
        let place = 10_u32.pow(remaining.into());
        // Digits that leave equal bounds for the remaining digits share a state.
        let mut digits = BTreeMap::<_, ByteSet>::new();
        for digit in b'0'..=b'9' {
            let lowest = u32::from(digit - b'0') * place;
            if lowest <= to && lowest + place > from {
                let bounds = (from.saturating_sub(lowest), (to - lowest).min(place - 1));
                let same = digits.entry(bounds).or_insert(ByteSet::EMPTY);
                *same = same.union(ByteSet::of(&[digit]));
            }
        }
        self.any_of(digits.into_iter().collect(), |nfa, (bounds, digits)| {
            let next = nfa.number(remaining, bounds, next);
            nfa.byte(digits, next)
        })
    }
}
