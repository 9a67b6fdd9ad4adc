//! A choice of a time slot with a small capacity: deliveries are created in it and cancelled.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    answer::{RawResponse, Rejection},
    linearizability::{Model, Operation},
    platform::{Platform, draft, members},
    workload::{Picker, Workload},
};
use crate::{caller::iri, failure::Failure};

/// The capacity in [`DEFINITION`].
const CAPACITY: usize = 2;

/// Has one choice for each hour of the next fortnight.
pub(super) const DEFINITION: &str = r#"
name = "Hourly"
opening_hours = [
    "Mo-Su 00:00-01:00", "Mo-Su 01:00-02:00", "Mo-Su 02:00-03:00", "Mo-Su 03:00-04:00",
    "Mo-Su 04:00-05:00", "Mo-Su 05:00-06:00", "Mo-Su 06:00-07:00", "Mo-Su 07:00-08:00",
    "Mo-Su 08:00-09:00", "Mo-Su 09:00-10:00", "Mo-Su 10:00-11:00", "Mo-Su 11:00-12:00",
    "Mo-Su 12:00-13:00", "Mo-Su 13:00-14:00", "Mo-Su 14:00-15:00", "Mo-Su 15:00-16:00",
    "Mo-Su 16:00-17:00", "Mo-Su 17:00-18:00", "Mo-Su 18:00-19:00", "Mo-Su 19:00-20:00",
    "Mo-Su 20:00-21:00", "Mo-Su 21:00-22:00", "Mo-Su 22:00-23:00", "Mo-Su 23:00-24:00",
]
interval = "14 days"
capacity = 2
"#;

/// The `value` of a choice.
pub(super) struct Slot(String);

#[derive(Clone, Debug)]
pub(super) enum Command {
    Create,
    /// Asks whether a delivery would be created.
    Assert,
    Cancel(String),
    /// Lists the deliveries that are not cancelled.
    List,
}

#[derive(Clone, Debug)]
pub(super) enum Response {
    Created(String),
    Accepted,
    Cancelled,
    Listed(Vec<String>),
    Rejected(Rejection),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The IRIs of the deliveries that have a booking.
    booked: BTreeSet<String>,
    /// The number of further ones: created, not yet shown by a response.
    unnamed: usize,
    cancelled: BTreeSet<String>,
}

impl State {
    fn is_full(&self) -> bool {
        self.booked.len() + self.unnamed == CAPACITY
    }

    fn create(&mut self, iri: &str) -> bool {
        !self.is_full() && !self.cancelled.contains(iri) && self.booked.insert(iri.to_owned())
    }

    fn cancel(&mut self, iri: &str) -> bool {
        self.cancelled.contains(iri)
            || (self.booked.remove(iri) && self.cancelled.insert(iri.to_owned()))
    }

    /// Whether the list agrees with the bookings. All bookings are named by it.
    fn list(&mut self, iris: &[String]) -> bool {
        let listed: BTreeSet<_> = iris.iter().cloned().collect();
        let agrees = listed.len() == iris.len()
            && listed.len() == self.booked.len() + self.unnamed
            && listed.is_superset(&self.booked)
            && listed.is_disjoint(&self.cancelled);
        self.booked = listed;
        self.unnamed = 0;
        agrees
    }
}

impl Model for Slot {
    type State = State;
    type Command = Command;
    type Response = Response;

    fn initial_state(&self) -> State {
        State::default()
    }

    fn apply(
        &self,
        state: &State,
        command: &Command,
        response: Option<&Response>,
    ) -> Option<State> {
        let mut next = state.clone();
        let agrees = match (command, response) {
            (Command::Create, Some(Response::Created(iri))) => next.create(iri),
            (Command::Create | Command::Assert, Some(Response::Rejected(rejection))) => {
                next.is_full() && is_full(rejection)
            }
            (Command::Create, None) => {
                next.unnamed += usize::from(!next.is_full());
                true
            }
            (Command::Assert, Some(Response::Accepted)) => !next.is_full(),
            (Command::Cancel(iri), Some(Response::Cancelled) | None) => next.cancel(iri),
            (Command::List, Some(Response::Listed(iris))) => next.list(iris),
            (Command::Assert | Command::List, None) => true,
            _ => false,
        };
        agrees.then_some(next)
    }
}

impl Workload for Slot {
    const NAME: &'static str = "slot";

    async fn next(platform: &Platform) -> Option<Self> {
        platform.next_slot().map(Self)
    }

    fn choose(&self, mut picker: Picker, operations: &[Operation<Self>]) -> Command {
        let responses = operations.iter().filter_map(Operation::response);
        let shown: Vec<String> = responses
            .flat_map(|response| match response {
                Response::Created(iri) => vec![iri.clone()],
                Response::Listed(iris) => iris.clone(),
                _ => Vec::new(),
            })
            .collect();
        let cancel = match &shown[..] {
            [] => Command::Create,
            shown => Command::Cancel(picker.pick(shown)),
        };
        picker.pick(&[
            Command::Create,
            Command::Create,
            Command::Create,
            cancel.clone(),
            cancel,
            Command::Assert,
            Command::List,
        ])
    }

    fn last_commands(&self) -> Vec<Command> {
        vec![Command::List, Command::Assert]
    }

    fn name(command: &Command) -> &'static str {
        match command {
            Command::Create => "create",
            Command::Assert => "assert",
            Command::Cancel(_) => "cancel",
            Command::List => "list",
        }
    }

    async fn send(&self, platform: &Platform, command: &Command) -> Result<Value, Failure> {
        let draft = draft("timeSlot", &self.0, "");
        match command {
            Command::Create => platform.create(&draft, None).await,
            Command::Assert => platform.assert(&draft).await,
            Command::Cancel(delivery) => platform.cancel(delivery).await,
            Command::List => {
                let (_, end) = self.0.split_once('/').unwrap();
                platform
                    .list(end, &[("exists[cancelledAt]", "false")])
                    .await
            }
        }
    }

    fn response(&self, command: &Command, response: RawResponse) -> Response {
        match (command, response) {
            (_, RawResponse::Rejection(rejection)) => Response::Rejected(rejection),
            (Command::Create, RawResponse::Success(delivery)) => {
                Response::Created(iri(&delivery).to_owned())
            }
            (Command::Assert, RawResponse::Success(_)) => Response::Accepted,
            (Command::Cancel(_), RawResponse::Success(_)) => Response::Cancelled,
            (Command::List, RawResponse::Success(page)) => Response::Listed(members(&page)),
        }
    }
}

/// Whether a rejection has no other reason than that the slot is full.
fn is_full(rejection: &Rejection) -> bool {
    let body = rejection.json();
    let violations = body["violations"].as_array();
    violations.is_some_and(|violations| {
        let [violation] = &violations[..] else {
            return false;
        };
        rejection.status == 400
            && violation["propertyPath"] == "dropoff.timeSlot"
            && violation["code"] == "time_slot_refused"
            && violation["message"]
                .as_str()
                .is_some_and(|message| message.contains("full"))
    })
}

#[cfg(test)]
mod tests;
