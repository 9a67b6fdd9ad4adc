//! "Late truth": what couriers report of tasks that have left their lists, or changed meanwhile. Nothing of it is lost.

mod applying;
mod conflicts;
mod erasing;
mod on_behalf_of;
mod races;
mod repeating;

use jiff::SignedDuration;
use proto::{
    CompleteTaskRequest, FailTaskRequest, Idempotency, Incident, ListIncidentsRequest, Report,
    Task, TaskEvent,
};
use tonic::Status;

use super::{Desk, Order, now};
use crate::harness::Platform;

/// What a courier writes, and when the task was done.
#[derive(Clone, Debug)]
struct Remarks {
    notes: &'static str,
    contact_name: &'static str,
    occurred_time: Option<prost_types::Timestamp>,
}

impl Remarks {
    /// Of what was done a minute ago.
    fn of_a_minute_ago(platform: &Platform) -> Self {
        let occurred_time = now(platform).map(|now| prost_types::Timestamp {
            seconds: now.seconds - 60,
            ..now
        });
        Self {
            notes: "Left at the door",
            contact_name: "Zoé",
            occurred_time,
        }
    }

    fn report(&self) -> Report {
        Report {
            occurred_time: self.occurred_time,
            ..Report::default()
        }
    }

    fn done(&self, task: &str) -> CompleteTaskRequest {
        CompleteTaskRequest {
            name: task.to_owned(),
            notes: self.notes.to_owned(),
            contact_name: self.contact_name.to_owned(),
            report: Some(self.report()),
            ..CompleteTaskRequest::default()
        }
    }

    fn failed(&self, task: &str) -> FailTaskRequest {
        FailTaskRequest {
            name: task.to_owned(),
            reason: "REFUSED".to_owned(),
            notes: self.notes.to_owned(),
            report: Some(self.report()),
            ..FailTaskRequest::default()
        }
    }
}

/// A command with which a courier reports the end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed,
}

impl End {
    async fn report(self, desk: &Desk, task: &str, remarks: &Remarks) -> Result<Task, Status> {
        match self {
            Self::Done => desk.complete_task(remarks.done(task)).await,
            Self::Failed => desk.fail_task(remarks.failed(task)).await,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Done => "DONE",
            Self::Failed => "FAILED",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::Failed => "REFUSED",
        }
    }
}

fn key(key: &str) -> Idempotency {
    Idempotency {
        key: key.to_owned(),
        request_hash: vec![7; 32],
    }
}

fn minute(platform: &Platform) {
    platform.advance(SignedDuration::from_mins(1));
}

/// All incidents of a task, newest first.
async fn incidents(desk: &Desk, task: &str) -> Vec<Incident> {
    let request = ListIncidentsRequest {
        task: task.to_owned(),
        ..ListIncidentsRequest::default()
    };
    desk.list_incidents(request).await.unwrap().incidents
}

/// The names of the events of a task.
async fn events(desk: &Desk, task: &str) -> Vec<String> {
    let history = desk.history(task).await;
    history.into_iter().map(|event| event.event).collect()
}

/// How many events of a name a task has.
async fn count(desk: &Desk, task: &str, event: &str) -> usize {
    let events = events(desk, task).await;
    events.iter().filter(|found| *found == event).count()
}

/// An instant, and so many microseconds.
fn after(
    instant: Option<prost_types::Timestamp>,
    microseconds: i32,
) -> Option<prost_types::Timestamp> {
    instant.map(|instant| prost_types::Timestamp {
        nanos: instant.nanos + 1000 * microseconds,
        ..instant
    })
}

/// The last events of a task.
async fn last_events<const N: usize>(desk: &Desk, task: &str) -> [TaskEvent; N] {
    let history = desk.history(task).await;
    history.last_chunk::<N>().unwrap().clone()
}

/// Gives the tasks of a delivery to Ada, and a minute later to another courier or none.
async fn move_away(platform: &Platform, desk: &Desk, order: &Order, couriers: [&str; 2]) {
    let [ada, next] = couriers;
    desk.assign(&[&order.pickup], "", ada).await;
    minute(platform);
    desk.assign(&[&order.pickup], ada, next).await;
}
