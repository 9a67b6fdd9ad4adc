//! What clients did and learned: each command with its times and its outcome.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::{Mutex, atomic::AtomicUsize},
};

use proto::{CourierList, Delivery, Task, task::State};
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
    Report,
    /// Of an incident.
    Close(String),
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

/// A command. Its key is also its notes, its description, or what was done.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// `api_apps/<id>`.
    pub(super) client: String,
    pub(super) key: String,
    pub(super) kind: Kind,
    /// The tasks concerned, with the lists that they shall be in.
    pub(super) tasks: BTreeMap<String, Option<List>>,
    /// The one task that it names.
    pub(super) task: String,
    /// By the clock of the device, which is wrong by `skew`.
    pub(super) occurred: i64,
    pub(super) skew: i64,
    /// When each attempt was sent, by a correct clock, if the attempts say so.
    pub(super) sent: Option<Vec<i64>>,
    pub(super) invoked: i64,
    pub(super) answered: i64,
    pub(super) outcome: Outcome,
    /// What it got when it was repeated after that.
    pub(super) repeated: Option<Outcome>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was sent, and its client gave up.
    Unknown,
    /// The task's state and since when it has it, if the answer shows them.
    Done(Option<(State, i64)>),
    Refused {
        reason: String,
        message: String,
    },
}

impl Command {
    pub(super) fn new(client: &str, kind: Kind, task: &str, now: i64) -> Self {
        Self {
            client: client.to_owned(),
            key: uuid::Uuid::now_v7().to_string(),
            kind,
            tasks: [(task.to_owned(), None)].into(),
            task: task.to_owned(),
            occurred: now,
            skew: 0,
            sent: None,
            invoked: now,
            answered: i64::MAX,
            outcome: Outcome::Unknown,
            repeated: None,
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
    pub(super) orders: Mutex<Vec<Order>>,
    pub(super) etags: Mutex<Etags>,
    answered: watch::Sender<u64>,
    /// Attempts without an answer.
    pub(super) lost: AtomicUsize,
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
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, enough).await.is_ok();
        assert!(in_time, "not {more} more answers");
    }
}

/// The etags of all lists that were answered.
#[derive(Default)]
pub(super) struct Etags {
    by_tasks: BTreeMap<u64, String>,
    by_etag: BTreeMap<String, u64>,
    /// Those of which one etag is for two lists, or two are for one.
    pub(super) wrong: usize,
}

impl Etags {
    pub(super) fn add(&mut self, list: &CourierList) {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&list.tasks);
        let etag = self
            .by_tasks
            .entry(hash)
            .or_insert_with(|| list.etag.clone());
        let tasks = self.by_etag.entry(list.etag.clone()).or_insert(hash);
        self.wrong += usize::from(*etag != list.etag || *tasks != hash);
    }
}
