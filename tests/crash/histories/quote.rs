//! A quote: clients race for its one use, which cancelling does not release.

use serde_json::{Value, json};

use super::{
    answer::{RawResponse, Rejection},
    linearizability::{Model, Operation},
    platform::{self, Platform, draft, members},
    workload::{Picker, Workload},
};
use crate::{caller::iri, failure::Failure};

/// A calculated price.
pub(super) struct Quote {
    /// The `before` of the priced dropoff.
    dropoff: String,
    iri: String,
    /// The `price` of the delivery that uses it.
    price: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Creates a delivery at the quoted price.
    Create,
    /// Asks whether it would be created.
    Assert,
    Cancel(String),
    /// Lists the deliveries with the priced dropoff's time.
    List,
}

#[derive(Clone, Debug)]
pub(super) enum Response {
    Created { delivery: String, price: Value },
    Accepted,
    Cancelled,
    Listed(Vec<String>),
    Rejected(Rejection),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    Unused,
    /// Used by a delivery that no response has shown yet.
    Used,
    UsedBy(String),
}

impl State {
    /// Whether the quote was used, by this delivery.
    fn is_used_by(&mut self, delivery: &str) -> bool {
        match self {
            Self::Unused => false,
            Self::Used => {
                *self = Self::UsedBy(delivery.to_owned());
                true
            }
            Self::UsedBy(known) => known == delivery,
        }
    }
}

impl Model for Quote {
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
        let is_unused = next == State::Unused;
        let agrees = match (command, response) {
            (Command::Create, Some(Response::Created { delivery, price })) => {
                next = State::UsedBy(delivery.clone());
                is_unused && *price == self.price
            }
            (Command::Create | Command::Assert, Some(Response::Rejected(rejection))) => {
                using_delivery(rejection).is_some_and(|delivery| next.is_used_by(&delivery))
            }
            (Command::Create, None) => {
                if is_unused {
                    next = State::Used;
                }
                true
            }
            (Command::Assert, Some(Response::Accepted)) => is_unused,
            (Command::Cancel(delivery), Some(Response::Cancelled)) => next.is_used_by(delivery),
            (Command::List, Some(Response::Listed(deliveries))) => match &deliveries[..] {
                [] => is_unused,
                [delivery] => next.is_used_by(delivery),
                _ => false,
            },
            (Command::Assert | Command::Cancel(_) | Command::List, None) => true,
            _ => false,
        };
        agrees.then_some(next)
    }
}

impl Workload for Quote {
    const NAME: &'static str = "quote";

    async fn next(platform: &Platform) -> Option<Self> {
        let dropoff = platform.next_dropoff_time();
        let draft = draft("before", &dropoff, "");
        let quoted = platform::until_success(|| platform.calculate_price(&draft)).await;
        let price = json!({
            "amount": quoted["amount"],
            "currency": quoted["currency"],
            "tax": quoted["tax"],
            "retailPrice": quoted["@id"],
        });
        let iri = iri(&quoted).to_owned();
        Some(Self {
            dropoff,
            iri,
            price,
        })
    }

    fn choose(&self, mut picker: Picker, operations: &[Operation<Self>]) -> Command {
        let mut responses = operations.iter().filter_map(Operation::response);
        let shown = responses.find_map(|response| match response {
            Response::Created { delivery, .. } => Some(delivery.clone()),
            Response::Rejected(rejection) => using_delivery(rejection),
            _ => None,
        });
        picker.pick(&[
            Command::Create,
            Command::Create,
            Command::Create,
            shown.map_or(Command::Create, Command::Cancel),
            Command::Assert,
            Command::List,
        ])
    }

    fn last_commands(&self) -> Vec<Command> {
        // The quote may have expired by then.
        vec![Command::List]
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
        let mut draft = draft("before", &self.dropoff, "");
        draft["retailPrice"] = self.iri.as_str().into();
        match command {
            Command::Create => platform.create(&draft, None).await,
            Command::Assert => platform.assert(&draft).await,
            Command::Cancel(delivery) => platform.cancel(delivery).await,
            Command::List => platform.list(&self.dropoff, &[]).await,
        }
    }

    fn response(&self, command: &Command, response: RawResponse) -> Response {
        match (command, response) {
            (_, RawResponse::Rejection(rejection)) => Response::Rejected(rejection),
            (Command::Create, RawResponse::Success(mut delivery)) => Response::Created {
                delivery: iri(&delivery).to_owned(),
                price: delivery["price"].take(),
            },
            (Command::Assert, RawResponse::Success(_)) => Response::Accepted,
            (Command::Cancel(_), RawResponse::Success(_)) => Response::Cancelled,
            (Command::List, RawResponse::Success(page)) => Response::Listed(members(&page)),
        }
    }
}

/// The delivery that has used the quote, by the text of the rejection.
fn using_delivery(rejection: &Rejection) -> Option<String> {
    let detail = rejection.json()["detail"].take();
    let start = detail.as_str()?.find("/api/deliveries/")?;
    let is_part = |letter: &char| letter.is_ascii_alphanumeric() || "/-".contains(*letter);
    let iri = detail.as_str()?[start..].chars().take_while(is_part);
    rejection.is(409, "price_used").then(|| iri.collect())
}

#[cfg(test)]
mod tests;
