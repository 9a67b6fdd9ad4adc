//! The table of what can be asked of the API: a request that is not in it has no route, and a
//! route that is not in it does not pass the tests.

mod access;
mod deliveries;
mod events;
mod itself;
mod notifications;
mod prices;
mod refusals;
mod shop;
mod tasks;
mod time_slots;
mod webhooks;

use super::Class;
use crate::error_codes::ErrorCode;

pub(super) use refusals::refusals;

/// Every operation, by subject, in the order in which people read of them.
pub(super) fn all() -> impl Iterator<Item = &'static Operation> {
    [
        access::ALL,
        deliveries::ALL,
        tasks::ALL,
        prices::ALL,
        time_slots::ALL,
        webhooks::ALL,
        notifications::ALL,
        events::ALL,
        shop::ALL,
        itself::ALL,
    ]
    .into_iter()
    .flatten()
}

/// A request that can be made.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) on: On,
    pub(super) method: &'static str,
    /// With `{…}` where a part of it varies.
    pub(super) path: &'static str,
    /// Its `operationId`: a verb and its object, as programs generated from the documentation
    /// call it.
    pub(super) id: &'static str,
    /// What it does, in a line.
    pub(super) title: &'static str,
    /// What else one should know; may be empty.
    pub(super) about: &'static str,
    /// What it is listed under.
    pub(super) subject: &'static str,
    pub(super) needs: Needs,
    /// Those of the query and the headers; those of the path are known by its `{…}`.
    pub(super) parameters: &'static [Parameter],
    pub(super) expects: Expects,
    pub(super) returns: Returns,
    /// Why it may be refused, beside the reasons that follow from the above: see `refusals`.
    pub(super) refusals: &'static [&'static ErrorCode],
}

/// What an operation is made on.
#[derive(Debug)]
pub(super) enum On {
    /// The resource itself, by its `@id`.
    Resource(&'static Class),
    /// The collection that the entrypoint links to by this field.
    Collection(&'static str),
    /// A resource with an address of its own.
    Path(&'static Class),
    /// Nothing that Hydra speaks of.
    Nothing,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Anybody.
    Nothing,
    /// Whoever has an API key and its secret.
    Credentials,
    /// Whoever has an access token.
    Token,
    /// Whoever has one with this scope.
    Scope(&'static str),
}

/// A part of a request beside its path and its body.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `query` or `header`.
    pub(super) place: &'static str,
    pub(super) about: &'static str,
    /// A JSON Schema.
    pub(super) schema: &'static str,
}

impl Parameter {
    /// Of every `POST` that writes.
    const IDEMPOTENCY_KEY: Self = Self {
        name: "Idempotency-Key",
        place: "header",
        about: "A name of yours for this request, such as a random UUID: sent again with it, the \
                request is done once, and answered as it was the first time, for 7 days.",
        schema: r#"{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}"#,
    };
}

/// What a request's body is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expects {
    Nothing,
    /// A resource, of which this is an example.
    Resource(&'static Class, &'static str),
    /// A resource, of which this is an example, or nothing.
    Optional(&'static Class, &'static str),
    /// `{}`, or nothing.
    Empty,
    /// The form that asks for an access token.
    Form,
}

/// What the answer is if all goes well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Returns {
    /// 200.
    Resource(&'static Class),
    /// 201, and `Location`.
    Created(&'static Class),
    /// 200, a resource that does not exist.
    Preview(&'static Class),
    /// 200, a collection of resources of this class.
    Members(&'static Class),
    /// 204.
    Nothing,
    /// 200, JSON-LD of which this is the JSON Schema.
    JsonLd(&'static str),
    /// 200, what `Accept` has no say in: the media types there are, and its JSON Schema.
    Document(&'static [&'static str], &'static str),
    /// 200, a word that is true only now.
    Health,
}

impl Returns {
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Created(_) => 201,
            Self::Nothing => 204,
            Self::Resource(_)
            | Self::Preview(_)
            | Self::Members(_)
            | Self::JsonLd(_)
            | Self::Document(..)
            | Self::Health => 200,
        }
    }

    /// Whether the form of the answer is negotiated.
    pub(super) fn is_negotiated(self) -> bool {
        !matches!(self, Self::Document(..) | Self::Health)
    }
}

impl Operation {
    /// Whether it is taken from the budget of whoever asks.
    pub(super) fn is_counted(&self) -> bool {
        self.needs == Needs::Credentials || self.path == "/api" || self.path.starts_with("/api/")
    }

    /// Whether it can be sent again without being done again.
    pub(super) fn takes_a_key(&self) -> bool {
        self.parameters
            .iter()
            .any(|parameter| parameter.name == Parameter::IDEMPOTENCY_KEY.name)
    }

    /// Whether the answer has a tag by which it can be asked for again.
    pub(super) fn is_tagged(&self) -> bool {
        self.method == "GET" && !matches!(self.returns, Returns::Health)
    }
}

/// What most operations are.
const READ: Operation = Operation {
    on: On::Nothing,
    method: "GET",
    path: "",
    id: "",
    title: "",
    about: "",
    subject: "",
    needs: Needs::Nothing,
    parameters: &[],
    expects: Expects::Nothing,
    returns: Returns::Nothing,
    refusals: &[],
};

/// Method and path of every operation.
#[cfg(test)]
pub(crate) fn method_and_path() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|operation| (operation.method, operation.path))
}

/// Method and path of every operation that Hydra's clients are told of.
#[cfg(test)]
pub(crate) fn hydra_method_and_path() -> impl Iterator<Item = (&'static str, &'static str)> {
    all()
        .filter(|operation| !matches!(operation.on, On::Nothing))
        .map(|operation| (operation.method, operation.path))
}
