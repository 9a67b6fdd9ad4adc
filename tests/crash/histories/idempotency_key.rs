//! An idempotency key: sent with one of two bodies, while the deliveries that it created are listed.

use serde_json::Value;
use uuid::Uuid;

use super::{
    answer::{RawResponse, Rejection},
    delivery::agree,
    linearizability::{Model, Operation},
    platform::{Platform, draft, members},
    workload::{Picker, Workload},
};
use crate::{caller::iri, failure::Failure};

/// A key, and the `before` of the deliveries that are created with it.
pub(super) struct IdempotencyKey {
    key: String,
    dropoff: String,
}

/// One of two bodies, which differ in the comment for the courier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Body {
    RingOnce,
    RingTwice,
}

impl Body {
    fn comments(self) -> &'static str {
        match self {
            Self::RingOnce => "Ring once",
            Self::RingTwice => "Ring twice",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Create(Body),
    List,
}

#[derive(Clone, Debug)]
pub(super) enum Response {
    Created(Created),
    Listed(Vec<String>),
    Rejected(Rejection),
}

#[derive(Clone, Debug)]
pub(super) struct Created {
    iri: String,
    comments: Value,
    /// The whole response.
    body: String,
}

/// What the key has created, as far as responses have shown it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    body: Body,
    iri: Option<String>,
    response: Option<String>,
}

impl Stored {
    fn agrees_with(&mut self, created: &Created) -> bool {
        created.comments == self.body.comments()
            && agree(&mut self.iri, &created.iri)
            && agree(&mut self.response, &created.body)
    }
}

impl Model for IdempotencyKey {
    /// `None` until the key has been used.
    type State = Option<Stored>;
    type Command = Command;
    type Response = Response;

    fn initial_state(&self) -> Self::State {
        None
    }

    fn apply(
        &self,
        state: &Self::State,
        command: &Command,
        response: Option<&Response>,
    ) -> Option<Self::State> {
        let mut next = state.clone();
        let agrees = match *command {
            Command::Create(body) => {
                let stored = next.get_or_insert(Stored {
                    body,
                    iri: None,
                    response: None,
                });
                match response {
                    None => true,
                    Some(Response::Created(created)) => {
                        stored.body == body && stored.agrees_with(created)
                    }
                    Some(Response::Rejected(rejection)) => {
                        stored.body != body && rejection.is(422, "idempotency_key_reused")
                    }
                    Some(Response::Listed(_)) => false,
                }
            }
            Command::List => match (&mut next, response) {
                (_, None) => true,
                (None, Some(Response::Listed(iris))) => iris.is_empty(),
                (Some(stored), Some(Response::Listed(iris))) => {
                    matches!(&iris[..], [iri] if agree(&mut stored.iri, iri))
                }
                _ => false,
            },
        };
        agrees.then_some(next)
    }
}

impl Workload for IdempotencyKey {
    const NAME: &'static str = "key";

    async fn next(platform: &Platform) -> Option<Self> {
        Some(Self {
            key: Uuid::now_v7().to_string(),
            dropoff: platform.next_dropoff_time(),
        })
    }

    fn choose(&self, mut picker: Picker, _: &[Operation<Self>]) -> Command {
        picker.pick(&[
            Command::Create(Body::RingOnce),
            Command::Create(Body::RingOnce),
            Command::Create(Body::RingOnce),
            Command::Create(Body::RingTwice),
            Command::List,
        ])
    }

    fn last_commands(&self) -> Vec<Command> {
        vec![
            Command::List,
            Command::Create(Body::RingOnce),
            Command::List,
        ]
    }

    fn name(command: &Command) -> &'static str {
        match command {
            Command::Create(_) => "create",
            Command::List => "list",
        }
    }

    async fn send(&self, platform: &Platform, command: &Command) -> Result<Value, Failure> {
        match *command {
            Command::Create(body) => {
                let draft = draft("before", &self.dropoff, body.comments());
                platform.create(&draft, Some(&self.key)).await
            }
            Command::List => platform.list(&self.dropoff, &[]).await,
        }
    }

    fn response(&self, command: &Command, response: RawResponse) -> Response {
        match (command, response) {
            (_, RawResponse::Rejection(rejection)) => Response::Rejected(rejection),
            (Command::List, RawResponse::Success(page)) => Response::Listed(members(&page)),
            (Command::Create(_), RawResponse::Success(delivery)) => Response::Created(Created {
                iri: iri(&delivery).to_owned(),
                comments: delivery["dropoff"]["comments"].clone(),
                body: delivery.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
