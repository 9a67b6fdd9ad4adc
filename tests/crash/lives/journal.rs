//! What clients did and learned: each command with its times and its outcome.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use proto::{CourierList, Delivery, Task, task::State, task_event::Actor};
use tokio::sync::watch;

use crate::checker::RECOVERY_TIMEOUT;

/// After and before, in microseconds, as all times here.
pub(super) type Window = [i64; 2];

/// A courier's list of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) courier: String,
    pub(super) day: String,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Start,
    Complete,
    Fail,
    Reopen,
    Reschedule {
        window: Window,
        both: bool,
    },
    /// Of a delivery.
    Cancel(String),
    /// From a courier, who may be none, as known to the client.
    Assign {
        from: String,
        single: bool,
    },
    Set {
        day: String,
        lists: Vec<CourierList>,
    },
}

/// A command. Its key is also its notes.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// `api_apps/<id>`.
    pub(super) client: String,
    pub(super) by: Actor,
    /// Who reports it, or for whom dispatch does; may be empty.
    pub(super) courier: String,
    pub(super) key: String,
    pub(super) kind: Kind,
    /// The one task that it names; empty if it sets lists.
    pub(super) task: String,
    /// The tasks concerned, with the lists that they shall be in.
    pub(super) tasks: BTreeMap<String, Option<List>>,
    /// As all times by a correct clock; that of the device is wrong by `skew`.
    pub(super) occurred: i64,
    pub(super) skew: i64,
    /// When each attempt was sent.
    pub(super) sent: Vec<i64>,
    pub(super) invoked: i64,
    pub(super) answered: i64,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was sent, and its client gave up.
    Unknown,
    /// The task's state and since when it has it, if the answer shows them.
    Done(Option<(State, i64)>),
    /// The reason.
    Refused(String),
}

impl Command {
    pub(super) fn is_end(&self) -> bool {
        matches!(self.kind, Kind::Complete | Kind::Fail)
    }

    /// Whether a repetition gets the same answer. `CONFLICT` is that of an assignment which left its task.
    pub(super) fn is_stored(&self) -> bool {
        match &self.outcome {
            Outcome::Unknown => false,
            Outcome::Done(_) => true,
            Outcome::Refused(reason) => ["TASK_STATE", "CONFLICT"].contains(&&**reason),
        }
    }
}

/// A created delivery, pickup first.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) created: i64,
    pub(super) tasks: [String; 2],
    pub(super) windows: [Window; 2],
}

impl Order {
    pub(super) fn of(delivery: Delivery) -> Self {
        let tasks = [delivery.pickup, delivery.dropoff].map(Option::unwrap);
        Self {
            name: delivery.name,
            created: micros(delivery.create_time),
            windows: tasks.each_ref().map(window),
            tasks: tasks.map(|task| task.name),
        }
    }
}

pub(super) fn window(task: &Task) -> Window {
    [micros(task.after), micros(task.before)]
}

pub(super) fn micros(time: Option<prost_types::Timestamp>) -> i64 {
    time.map_or(0, |time| {
        time.seconds * 1_000_000 + i64::from(time.nanos / 1000)
    })
}

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub(super) fn timestamp(micros: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap(),
    })
}

/// The time of the machine, which is that of the platform.
pub(super) fn now() -> i64 {
    delivery::Clock::system().now().as_microsecond()
}

#[derive(Default)]
pub(super) struct Journal {
    pub(super) commands: Mutex<Vec<Command>>,
    /// Answered commands that were sent again, with their second outcomes.
    pub(super) replays: Mutex<Vec<Command>>,
    pub(super) orders: Mutex<Vec<Order>>,
    answered: watch::Sender<u64>,
    last: Mutex<i64>,
}

impl Journal {
    /// The time, or a little later: a number that no other call gets.
    pub(super) fn mark(&self) -> i64 {
        let mut last = self.last.lock().unwrap();
        *last = now().max(*last + 1);
        *last
    }

    pub(super) fn add(&self, command: Command) {
        if command.outcome != Outcome::Unknown {
            self.answered.send_modify(|answered| *answered += 1);
        }
        self.commands.lock().unwrap().push(command);
    }

    pub(super) fn answered(&self) -> u64 {
        *self.answered.borrow()
    }

    /// Waits for this many more answers.
    pub(super) async fn wait_for_answers(&self, more: u64) {
        let mut answered = self.answered.subscribe();
        let enough = *answered.borrow() + more;
        let enough = answered.wait_for(|answered| *answered >= enough);
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT + Duration::from_secs(10), enough);
        assert!(in_time.await.is_ok(), "not {more} more answers");
    }
}
