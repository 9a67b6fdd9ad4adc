//! Decides whether a history of one object is linearizable: whether its operations, in an order that
//! agrees with real time, get from a sequential model the responses that they got.
//!
//! The search of Wing and Gong: choose an operation that may be next, apply it to the model, go on,
//! and go back where the model refuses. Lowe's addition: a set of linearized operations that led to
//! the same state before is not searched again.

use std::{
    collections::HashSet,
    fmt::{self, Debug},
    hash::Hash,
};

/// The sequential specification of an object.
pub(super) trait Model {
    type State: Clone + Debug + Eq + Hash;
    type Command: Clone + Debug;
    type Response: Clone + Debug;

    fn initial_state(&self) -> Self::State;

    /// The state after a command with this response; `None` if the command cannot get this response
    /// in this state. Without a response: the state after the command took effect, if it can.
    fn apply(
        &self,
        state: &Self::State,
        command: &Self::Command,
        response: Option<&Self::Response>,
    ) -> Option<Self::State>;
}

/// A command of a client and what the client learned of it. Instants are numbers of a logical clock.
pub(super) struct Operation<M: Model> {
    pub(super) client: usize,
    pub(super) command: M::Command,
    /// Before the request was sent.
    pub(super) invoked: u64,
    /// After the response was received. Without one, the command may have taken effect at any time
    /// after its invocation, or never.
    pub(super) returned: Option<(u64, M::Response)>,
}

impl<M: Model> Operation<M> {
    pub(super) fn response(&self) -> Option<&M::Response> {
        self.returned.as_ref().map(|(_, response)| response)
    }

    fn end(&self) -> u64 {
        self.returned.as_ref().map_or(u64::MAX, |(end, _)| *end)
    }

    /// Whether neither ended before the other began.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.invoked < other.end() && other.invoked < self.end()
    }
}

impl<M: Model> Debug for Operation<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}, {}", self.client, self.invoked)?;
        match &self.returned {
            Some((end, response)) => write!(f, "-{end}: {:?} -> {response:?}", self.command),
            None => write!(f, "-?: {:?} -> unknown", self.command),
        }
    }
}

/// The most operations of a history.
const MAX_OPERATIONS: usize = 64;

/// Checks a history.
pub(super) fn check<M: Model>(
    model: &M,
    operations: &[Operation<M>],
) -> Result<(), NotLinearizable> {
    assert!(operations.len() <= MAX_OPERATIONS);
    let mut search = Search {
        model,
        operations,
        visited: HashSet::new(),
        path: Vec::new(),
        longest: Vec::new(),
    };
    if search.extends(0, &model.initial_state()) {
        return Ok(());
    }
    let longest = search.longest.iter().map(|&index| &operations[index]);
    Err(NotLinearizable {
        operations: list(operations),
        longest: list(longest),
    })
}

struct Search<'a, M: Model> {
    model: &'a M,
    operations: &'a [Operation<M>],
    /// The configurations searched so far: a set of linearized operations and the state after them.
    visited: HashSet<(u64, M::State)>,
    /// The linearized operations in order.
    path: Vec<usize>,
    longest: Vec<usize>,
}

impl<M: Model> Search<'_, M> {
    /// Whether an order of the operations linearized so far, which led to `state`, can be extended
    /// to all operations with a response.
    fn extends(&mut self, linearized: u64, state: &M::State) -> bool {
        if !self.visited.insert((linearized, state.clone())) {
            return false;
        }
        if self.path.len() > self.longest.len() {
            self.longest.clone_from(&self.path);
        }
        let operations = self.operations;
        let remaining = operations
            .iter()
            .enumerate()
            .filter(|(index, _)| linearized & bit(*index) == 0);
        let Some(first_end) = remaining
            .clone()
            .filter(|(_, operation)| operation.returned.is_some())
            .map(|(_, operation)| operation.end())
            .min()
        else {
            return true;
        };
        // The next operation began before any remaining one ended.
        for (index, operation) in remaining.filter(|(_, next)| next.invoked < first_end) {
            let response = operation.response();
            let next = self.model.apply(state, &operation.command, response);
            // An operation without a response and without an effect may as well never happen.
            let Some(next) = next.filter(|next| response.is_some() || next != state) else {
                continue;
            };
            self.path.push(index);
            if self.extends(linearized | bit(index), &next) {
                return true;
            }
            self.path.pop();
        }
        false
    }
}

fn bit(index: usize) -> u64 {
    1 << index
}

/// A history that no order explains.
#[derive(Debug)]
pub(super) struct NotLinearizable {
    operations: Vec<String>,
    /// One of the longest sequences that the model explains.
    longest: Vec<String>,
}

impl fmt::Display for NotLinearizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "not linearizable:\n  {}", self.operations.join("\n  "))?;
        write!(f, "explained at most:\n  {}", self.longest.join("\n  "))
    }
}

fn list<'a, M: Model + 'a>(operations: impl IntoIterator<Item = &'a Operation<M>>) -> Vec<String> {
    let operations = operations.into_iter();
    operations
        .map(|operation| format!("{operation:?}"))
        .collect()
}

/// Handwritten histories.
pub(super) mod by_hand {
    use std::ops::RangeInclusive;

    use super::{Model, Operation, check};

    /// An operation from its invocation to its response.
    pub(in super::super) fn known<M: Model>(
        time: RangeInclusive<u64>,
        command: M::Command,
        response: M::Response,
    ) -> Operation<M> {
        Operation {
            client: 0,
            command,
            invoked: *time.start(),
            returned: Some((*time.end(), response)),
        }
    }

    /// An operation without a response.
    pub(in super::super) fn unknown<M: Model>(invoked: u64, command: M::Command) -> Operation<M> {
        Operation {
            client: 0,
            command,
            invoked,
            returned: None,
        }
    }

    #[track_caller]
    pub(in super::super) fn assert_linearizable<M: Model>(model: &M, operations: &[Operation<M>]) {
        if let Err(error) = check(model, operations) {
            panic!("{error}");
        }
    }

    #[track_caller]
    pub(in super::super) fn assert_not_linearizable<M: Model>(
        model: &M,
        operations: &[Operation<M>],
    ) {
        assert!(check(model, operations).is_err(), "{operations:#?}");
    }
}
