//! A delivery: its tasks are completed, it is cancelled, and it is read.

use serde_json::Value;

use super::{
    answer::{RawResponse, Rejection},
    linearizability::{Model, Operation},
    platform::{self, Platform, draft, text},
    workload::{Picker, Workload},
};
use crate::{caller::iri, failure::Failure};

/// A created delivery.
pub(super) struct Delivery {
    iri: String,
    /// The IRIs of the pickup and of the dropoff.
    tasks: [String; 2],
    created: State,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Pickup,
    Dropoff,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    ReadDelivery,
    ReadTask(Task),
    Complete(Task),
    Cancel,
}

#[derive(Clone, Debug)]
pub(super) enum Response {
    Delivery {
        tasks: [TaskView; 2],
        cancelled_at: Option<String>,
    },
    Task(TaskView),
    Cancelled,
    Rejected(Rejection),
}

#[derive(Clone, Debug)]
pub(super) struct TaskView {
    status: String,
    updated_at: String,
    cancelled_at: Option<String>,
}

impl TaskView {
    fn of(task: &Value) -> Self {
        Self {
            status: text(&task["status"]),
            updated_at: text(&task["updatedAt"]),
            cancelled_at: time(&task["cancelledAt"]),
        }
    }
}

fn time(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// An instant that the platform chooses: `None` until a response has shown it.
type Time = Option<String>;

/// Whether a response shows the same as earlier ones.
pub(super) fn agree(known: &mut Option<String>, shown: &str) -> bool {
    known.get_or_insert_with(|| shown.to_owned()) == shown
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    tasks: [TaskState; 2],
    /// `None` if it is not cancelled, `Some(None)` if it is and no response has shown when.
    cancelled_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TaskState {
    is_done: bool,
    updated_at: Time,
}

impl State {
    fn of(delivery: &Value) -> Self {
        let tasks = ["pickup", "dropoff"].map(|task| TaskState {
            is_done: false,
            updated_at: time(&delivery[task]["updatedAt"]),
        });
        Self {
            tasks,
            cancelled_at: None,
        }
    }

    /// Executes a command, or returns the task state that its rejection names.
    fn execute(&mut self, command: Command) -> Result<(), &'static str> {
        match command {
            Command::ReadDelivery | Command::ReadTask(_) => {}
            Command::Complete(_) if self.cancelled_at.is_some() => return Err("CANCELLED"),
            Command::Complete(task) => {
                let task = &mut self.tasks[task as usize];
                if !task.is_done {
                    task.is_done = true;
                    task.updated_at = None;
                }
            }
            Command::Cancel if self.cancelled_at.is_some() => {}
            Command::Cancel if self.tasks.iter().any(|task| task.is_done) => return Err("DONE"),
            Command::Cancel => {
                self.cancelled_at = Some(None);
                for task in &mut self.tasks {
                    task.updated_at = None;
                }
            }
        }
        Ok(())
    }

    fn agrees_with(&mut self, command: Command, response: &Response) -> bool {
        match (command, response) {
            (
                Command::ReadDelivery,
                Response::Delivery {
                    tasks: [pickup, dropoff],
                    cancelled_at,
                },
            ) => {
                self.is_cancelled_at(cancelled_at.as_deref())
                    && self.task_agrees_with(Task::Pickup, pickup)
                    && self.task_agrees_with(Task::Dropoff, dropoff)
            }
            (Command::ReadTask(task) | Command::Complete(task), Response::Task(view)) => {
                self.task_agrees_with(task, view)
            }
            (Command::Cancel, Response::Cancelled) => true,
            _ => false,
        }
    }

    fn task_agrees_with(&mut self, task: Task, view: &TaskView) -> bool {
        let state = &mut self.tasks[task as usize];
        let status = if state.is_done { "DONE" } else { "TODO" };
        view.status == status
            && agree(&mut state.updated_at, &view.updated_at)
            && self.is_cancelled_at(view.cancelled_at.as_deref())
    }

    fn is_cancelled_at(&mut self, shown: Option<&str>) -> bool {
        match (&mut self.cancelled_at, shown) {
            (None, None) => true,
            (Some(time), Some(shown)) => agree(time, shown),
            _ => false,
        }
    }
}

impl Model for Delivery {
    type State = State;
    type Command = Command;
    type Response = Response;

    fn initial_state(&self) -> State {
        self.created.clone()
    }

    fn apply(
        &self,
        state: &State,
        command: &Command,
        response: Option<&Response>,
    ) -> Option<State> {
        let mut next = state.clone();
        let executed = next.execute(*command);
        let agrees = match (executed, response) {
            (_, None) => true,
            (Ok(()), Some(response)) => next.agrees_with(*command, response),
            (Err(state), Some(Response::Rejected(rejection))) => {
                let detail = rejection.json()["detail"].to_string();
                rejection.is(409, "task_state") && detail.contains(&format!(" is {state} since "))
            }
            (Err(_), Some(_)) => false,
        };
        agrees.then_some(next)
    }
}

impl Workload for Delivery {
    const NAME: &'static str = "delivery";

    async fn next(platform: &Platform) -> Option<Self> {
        let draft = draft("before", &platform.next_dropoff_time(), "");
        let created = platform::until_success(|| platform.create(&draft, None)).await;
        Some(Self {
            iri: iri(&created).to_owned(),
            tasks: ["pickup", "dropoff"].map(|task| iri(&created[task]).to_owned()),
            created: State::of(&created),
        })
    }

    fn choose(&self, mut picker: Picker, _: &[Operation<Self>]) -> Command {
        let task = picker.pick(&[Task::Pickup, Task::Dropoff]);
        picker.pick(&[
            Command::Complete(task),
            Command::Complete(task),
            Command::Cancel,
            Command::Cancel,
            Command::ReadTask(task),
            Command::ReadDelivery,
        ])
    }

    fn last_commands(&self) -> Vec<Command> {
        vec![Command::ReadDelivery]
    }

    fn name(command: &Command) -> &'static str {
        match command {
            Command::ReadDelivery => "read delivery",
            Command::ReadTask(_) => "read task",
            Command::Complete(_) => "complete",
            Command::Cancel => "cancel",
        }
    }

    async fn send(&self, platform: &Platform, command: &Command) -> Result<Value, Failure> {
        match *command {
            Command::ReadDelivery => platform.read(&self.iri).await,
            Command::ReadTask(task) => platform.read(&self.tasks[task as usize]).await,
            Command::Complete(task) => platform.complete(&self.tasks[task as usize]).await,
            Command::Cancel => platform.cancel(&self.iri).await,
        }
    }

    fn response(&self, command: &Command, response: RawResponse) -> Response {
        match (command, response) {
            (_, RawResponse::Rejection(rejection)) => Response::Rejected(rejection),
            (Command::Cancel, RawResponse::Success(_)) => Response::Cancelled,
            (Command::ReadDelivery, RawResponse::Success(delivery)) => Response::Delivery {
                tasks: ["pickup", "dropoff"].map(|task| TaskView::of(&delivery[task])),
                cancelled_at: time(&delivery["cancelledAt"]),
            },
            (Command::ReadTask(_) | Command::Complete(_), RawResponse::Success(task)) => {
                Response::Task(TaskView::of(&task))
            }
        }
    }
}

#[cfg(test)]
mod tests;
