//! The checker on the usual example: a register, written, read and compared.

use super::linearizability::{
    Model, Operation,
    by_hand::{assert_linearizable, assert_not_linearizable, known, unknown},
};

struct Register;

#[derive(Clone, Copy, Debug)]
enum Access {
    Read,
    Write(u8),
    /// Writes the second value if the register has the first.
    Replace(u8, u8),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Value(u8),
    Done,
    Refused,
}

impl Model for Register {
    type State = u8;
    type Command = Access;
    type Response = Answer;

    fn initial_state(&self) -> u8 {
        0
    }

    fn apply(&self, state: &u8, command: &Access, response: Option<&Answer>) -> Option<u8> {
        let (next, expected) = match *command {
            Access::Read => (*state, Answer::Value(*state)),
            Access::Write(value) => (value, Answer::Done),
            Access::Replace(old, new) if old == *state => (new, Answer::Done),
            Access::Replace(..) => (*state, Answer::Refused),
        };
        let is_expected = |response: &Answer| match (response, expected) {
            (Answer::Value(read), Answer::Value(value)) => *read == value,
            (Answer::Done, Answer::Done) | (Answer::Refused, Answer::Refused) => true,
            _ => false,
        };
        response.is_none_or(is_expected).then_some(next)
    }
}

type Operations = Vec<Operation<Register>>;

#[test]
fn operations_one_after_the_other_take_effect_in_that_order() {
    assert_linearizable(&Register, &Operations::new());
    let read = |value| {
        [
            known(1..=2, Access::Write(1), Answer::Done),
            known(3..=4, Access::Write(2), Answer::Done),
            known(5..=6, Access::Read, Answer::Value(value)),
        ]
    };
    assert_linearizable(&Register, &read(2));
    assert_not_linearizable(&Register, &read(1));
    assert_not_linearizable(&Register, &read(0));
}

#[test]
fn a_read_during_a_write_returns_either_value_but_not_the_new_before_the_old() {
    let reads = |first, second| {
        [
            known(1..=8, Access::Write(1), Answer::Done),
            known(2..=3, Access::Read, Answer::Value(first)),
            known(4..=5, Access::Read, Answer::Value(second)),
        ]
    };
    for (first, second) in [(0, 0), (0, 1), (1, 1)] {
        assert_linearizable(&Register, &reads(first, second));
    }
    assert_not_linearizable(&Register, &reads(1, 0));
}

#[test]
fn of_two_replacements_of_one_value_one_is_refused() {
    let replacements = |second| {
        [
            known(1..=4, Access::Replace(0, 1), Answer::Done),
            known(2..=3, Access::Replace(0, 2), second),
        ]
    };
    assert_linearizable(&Register, &replacements(Answer::Refused));
    assert_not_linearizable(&Register, &replacements(Answer::Done));
}

#[test]
fn an_unknown_operation_takes_effect_late_or_never_but_once_and_not_before_its_invocation() {
    let reads = |values: [u8; 3]| {
        let mut history = vec![unknown(3, Access::Write(1))];
        for (begin, value) in [1, 5, 7].into_iter().zip(values) {
            history.push(known(begin..=begin + 1, Access::Read, Answer::Value(value)));
        }
        history
    };
    for values in [[0, 0, 0], [0, 0, 1], [0, 1, 1]] {
        assert_linearizable(&Register, &reads(values));
    }
    assert_not_linearizable(&Register, &reads([1, 1, 1]));
    assert_not_linearizable(&Register, &reads([0, 1, 0]));

    let mut overwritten = reads([0, 1, 1]);
    overwritten.push(known(9..=10, Access::Write(2), Answer::Done));
    overwritten.push(known(11..=12, Access::Read, Answer::Value(1)));
    assert_not_linearizable(&Register, &overwritten);
    overwritten.push(unknown(4, Access::Write(1)));
    assert_linearizable(&Register, &overwritten);
}

/// The writes have 12! orders. A set of writes, together with the value after them, is searched once.
#[test]
fn a_history_of_many_concurrent_operations_is_decided_at_once() {
    let mut history: Operations = (0..12)
        .map(|value| known(1..=100, Access::Write(value), Answer::Done))
        .collect();
    history.push(known(101..=102, Access::Read, Answer::Value(7)));
    assert_linearizable(&Register, &history);
    history.truncate(12);
    history.push(known(101..=102, Access::Read, Answer::Value(12)));
    assert_not_linearizable(&Register, &history);
}
