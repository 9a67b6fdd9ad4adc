//! Tests one kind of object. Workers use one object after the other: several clients send random
//! commands to it while processes are killed. Once the faults have ended, each object is read again
//! and its history is checked.

use std::{
    fmt,
    iter::Cycle,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
    vec,
};

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    answer::{RECOVERY_TIMEOUT, RawResponse, RequestResult},
    linearizability::{self, Model, Operation},
    platform::{PAUSE_AFTER_FAILURE, Platform},
};
use crate::{failure::Failure, random::Random};

/// The number of objects of a kind that are used at the same time.
pub(super) const CONCURRENT_OBJECTS: usize = 2;

/// The number of concurrent clients of an object.
const CLIENTS: usize = 4;

/// The number of commands of each client.
const COMMANDS: usize = 4;

/// The number of pickers after which they repeat.
const PICKERS: usize = 4096;

/// The most histories of a kind that are printed when a test fails.
const MAX_SHOWN: usize = 2;

/// A kind of object, and how clients use it.
pub(super) trait Workload:
    Model<Command: Send + Sync, Response: Send + Sync> + Sized + Send + Sync
{
    const NAME: &'static str;

    /// Prepares the next object; `None` if there are no more.
    fn next(platform: &Platform) -> impl Future<Output = Option<Self>> + Send;

    /// A random command, given the operations so far.
    fn choose(&self, picker: Picker, operations: &[Operation<Self>]) -> Self::Command;

    /// The commands that show the object's final state.
    fn last_commands(&self) -> Vec<Self::Command>;

    /// The command's name in the counts of answers.
    fn name(command: &Self::Command) -> &'static str;

    fn send(
        &self,
        platform: &Platform,
        command: &Self::Command,
    ) -> impl Future<Output = Result<Value, Failure>> + Send;

    fn response(&self, command: &Self::Command, response: RawResponse) -> Self::Response;
}

/// Picks from lists, one after the other, by a random number.
#[derive(Clone, Copy)]
pub(super) struct Picker(u64);

impl Picker {
    pub(super) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        let count = u64::try_from(values.len()).unwrap();
        let index = usize::try_from(self.0 % count).unwrap();
        self.0 /= count;
        values[index].clone()
    }
}

/// A reproducible sequence of pickers.
pub(super) struct Pickers(Cycle<vec::IntoIter<u64>>);

impl Pickers {
    pub(super) fn draw(random: &mut Random) -> Self {
        let pickers: Vec<_> = (0..PICKERS).map(|_| random.below(u64::MAX)).collect();
        Self(pickers.into_iter().cycle())
    }

    fn next(&mut self) -> Picker {
        Picker(self.0.next().unwrap())
    }
}

/// The checked histories of one kind of object.
pub(super) struct Checked {
    kind: &'static str,
    histories: usize,
    not_linearizable: usize,
    /// The first of those.
    pub(super) violations: Vec<String>,
    pub(super) operations: usize,
    /// Operations that overlapped another one of the same object.
    pub(super) overlapping: usize,
}

impl Checked {
    fn new(kind: &'static str) -> Self {
        Self {
            kind,
            histories: 0,
            not_linearizable: 0,
            violations: Vec::new(),
            operations: 0,
            overlapping: 0,
        }
    }

    fn add<W: Workload>(&mut self, workload: &W, operations: &[Operation<W>]) {
        self.histories += 1;
        self.operations += operations.len();
        self.overlapping += overlapping(operations);
        if let Err(error) = linearizability::check(workload, operations) {
            self.not_linearizable += 1;
            if self.violations.len() < MAX_SHOWN {
                self.violations.push(format!("{} {error}", self.kind));
            }
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.histories)?;
        match self.not_linearizable {
            0 => Ok(()),
            count => write!(f, " ({count} not linearizable)"),
        }
    }
}

/// Uses objects until `finish`, when the platform must serve without faults; then checks them.
pub(super) async fn run<W: Workload>(
    platform: Arc<Platform>,
    pickers: [Pickers; CONCURRENT_OBJECTS],
    finish: CancellationToken,
) -> Checked {
    let workers = pickers.map(|pickers| use_objects::<W>(&platform, pickers, &finish));
    let objects = join_all(workers).await.into_iter().flatten();

    let mut checked = Checked::new(W::NAME);
    for object in objects {
        object.send_last_commands(&platform).await;
        let mut operations = object.operations.into_inner().unwrap();
        operations.sort_by_key(|operation| operation.invoked);
        checked.add(&object.workload, &operations);
    }
    checked
}

/// Uses one object after the other until `finish`.
async fn use_objects<W: Workload>(
    platform: &Platform,
    mut pickers: Pickers,
    finish: &CancellationToken,
) -> Vec<Object<W>> {
    let mut objects = Vec::new();
    while !finish.is_cancelled() {
        let Some(workload) = W::next(platform).await else {
            finish.cancelled().await;
            break;
        };
        let object = Object::new(workload);
        let clients = [(); CLIENTS].map(|()| [(); COMMANDS].map(|()| pickers.next()));
        let clients = clients.into_iter().enumerate();
        join_all(clients.map(|(client, pickers)| object.use_by(platform, client, pickers))).await;
        objects.push(object);
    }
    objects
}

/// An object and its history.
struct Object<W: Workload> {
    workload: W,
    /// Advanced by each invocation and each response.
    clock: AtomicU64,
    operations: Mutex<Vec<Operation<W>>>,
}

impl<W: Workload> Object<W> {
    fn new(workload: W) -> Self {
        Self {
            workload,
            clock: AtomicU64::new(0),
            operations: Mutex::default(),
        }
    }

    /// Lets a client send its commands, one after the other.
    async fn use_by(&self, platform: &Platform, client: usize, pickers: [Picker; COMMANDS]) {
        for picker in pickers {
            let command = self
                .workload
                .choose(picker, &self.operations.lock().unwrap());
            if !self.execute(platform, client, &command).await {
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }

    /// Sends and records a command; returns whether it was answered.
    async fn execute(&self, platform: &Platform, client: usize, command: &W::Command) -> bool {
        let deadline = Instant::now() + RECOVERY_TIMEOUT;
        let (invoked, end, answer) = loop {
            let invoked = self.tick();
            let result = RequestResult::of(self.workload.send(platform, command).await);
            let end = self.tick();
            match result {
                RequestResult::Answered(answer) => break (invoked, end, Some(answer)),
                RequestResult::Unknown => break (invoked, end, None),
                RequestResult::NotExecuted => {
                    assert!(Instant::now() < deadline, "the platform is not reachable");
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        };
        let name = format!("{}: {}", W::NAME, W::name(command));
        platform.answer_counts.count(&name, answer.as_ref());
        let returned = answer.map(|answer| (end, self.workload.response(command, answer)));
        let is_answered = returned.is_some();
        self.operations.lock().unwrap().push(Operation {
            client,
            command: command.clone(),
            invoked,
            returned,
        });
        is_answered
    }

    /// Sends each last command until it is answered.
    async fn send_last_commands(&self, platform: &Platform) {
        let deadline = Instant::now() + RECOVERY_TIMEOUT;
        for command in self.workload.last_commands() {
            while !self.execute(platform, CLIENTS, &command).await {
                assert!(Instant::now() < deadline, "{command:?} is not answered");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

fn overlapping<M: Model>(operations: &[Operation<M>]) -> usize {
    let overlaps_another = |(index, operation): &(usize, &Operation<M>)| {
        let mut others = operations.iter().enumerate();
        others.any(|(other, another)| other != *index && operation.overlaps(another))
    };
    operations
        .iter()
        .enumerate()
        .filter(overlaps_another)
        .count()
}
