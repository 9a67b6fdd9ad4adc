//! The errors of a core and their mapping to gRPC statuses.

use std::{collections::HashMap, time::Duration};

use domain::{
    api_client::Scope,
    courier::ListKey,
    price_list::RuleOutcome,
    violation::{Violation, Violations},
};
use process::logs::error_chain;
use proto::{ERROR_DOMAIN, iri::Collection};
use storage::courier_lists::Change;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use crate::{routing, secrets::secret_box};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// All violations of the request.
    #[error("the request is not valid")]
    Invalid(Violations),
    #[error("{0}")]
    Unauthenticated(Unauthenticated),
    #[error("the scope {scope} is required")]
    Forbidden { scope: Scope },
    #[error("{0}")]
    InvalidScope(String),
    /// API clients of the platform itself have no store and so cannot access a store's resources.
    #[error("this API client belongs to no store")]
    NoStore,
    /// Nothing is done for its clients, and nothing is ordered on its behalf.
    #[error("the store is disabled: ask the platform's operator to enable it")]
    StoreDisabled,
    /// Missing, or of another store. With the resource's name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// A text that is not the name of a resource of the collection.
    #[error("{} does not exist: a name is {}", .0, .1.name_format())]
    InvalidName(String, Collection),
    /// The time slot became fully booked between the check and the booking.
    #[error("the time slot is fully booked")]
    SlotFull,
    /// A definition changed between planning a delivery and creating it, each time that it was
    /// planned.
    #[error("a definition changed while the delivery was created; repeat the request")]
    DefinitionChanged,
    #[error(
        "the external reference {reference:?} is already used by {}",
        proto::iri::of(.existing)
    )]
    ExternalReferenceTaken {
        reference: String,
        /// The resource name of that delivery.
        existing: String,
    },
    /// The reason, a machine-readable code in `UPPER_SNAKE`, and the message.
    #[error("{1}")]
    Conflict(&'static str, String),
    /// Lists of couriers are not as a request says.
    #[error("list the lists again, these are not as the request says: {}", names(.0))]
    ListsChanged(Vec<ChangedList>),
    /// The differences between a draft and the delivery its price was calculated for.
    #[error("the price was calculated for another delivery")]
    PriceMismatch(Violations),
    #[error(
        "the idempotency key was used for another request; use a new key for each request, and the same key only to repeat a request unchanged"
    )]
    IdempotencyKeyReused,
    #[error("a request with this idempotency key is still in progress")]
    IdempotencyKeyInUse,
    #[error("the delivery price could not be calculated")]
    PriceNotCalculated {
        /// Each rule with the reason why it did not match.
        rules: Vec<(String, String)>,
    },
    /// The requested data is no longer stored. The reason and the message.
    #[error("{1}")]
    Expired(&'static str, String),
    /// The reason and the message.
    #[error("{1}")]
    Quota(&'static str, String),
    #[error("more than {quota} requests in {} s", .window.as_secs())]
    RateLimited {
        quota: u32,
        window: Duration,
        retry_after: Duration,
    },
    #[error("the client has {limit} requests in flight: wait for their responses")]
    TooManyCalls { limit: usize },
    #[error("the store has created {quota} in 24 hours, which is its quota")]
    DeliveryQuota {
        quota: String,
        retry_after: Duration,
    },
    #[error("no webhook dispatcher is connected to this core")]
    NoDispatcher,
    /// Ends streams.
    #[error("this core is shutting down; call another one, or this one again")]
    ShuttingDown,
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    SecretBox(#[from] secret_box::Error),
    #[error(transparent)]
    Geocoding(#[from] geocoding::Error),
    #[error(transparent)]
    Routing(#[from] routing::Error),
    #[error("cannot access the folder of images")]
    Images(#[from] object_store::Error),
    #[error("{0}")]
    Bug(String),
}

/// A list of a courier that is not as a request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedList {
    pub list: ListKey,
    /// Its last change; `None` if there was none.
    pub change: Option<Change>,
}

impl ChangedList {
    fn name(&self) -> String {
        let courier = Collection::Couriers.name(self.list.courier_id);
        format!("{courier} on {}", self.list.day)
    }

    /// Who changed it and when, for dispatch.
    fn description(&self) -> String {
        self.change.as_ref().map_or_else(
            || "was never changed".to_owned(),
            |change| {
                let client = Collection::ApiClients.name(change.by);
                format!("changed by {client} at {}", change.at)
            },
        )
    }
}

fn names(lists: &[ChangedList]) -> String {
    let names = lists.iter().map(ChangedList::name);
    names.collect::<Vec<_>>().join(", ")
}

/// The reason of a change of couriers' lists which are not as its caller knows them.
pub(crate) const LISTS_CHANGED: &str = "LISTS_CHANGED";

impl Error {
    pub(crate) fn invalid(
        field: impl Into<String>,
        reason: &'static str,
        description: impl Into<String>,
    ) -> Self {
        let mut violations = Violations::new();
        violations.add(field, reason, description);
        Self::Invalid(violations)
    }

    pub(crate) fn price_not_calculated(outcomes: &[RuleOutcome]) -> Self {
        let rule = |outcome: &RuleOutcome| (outcome.rule.clone(), outcome.reason.clone());
        Self::PriceNotCalculated {
            rules: outcomes.iter().map(rule).collect(),
        }
    }

    pub(crate) fn check(violations: Violations) -> Result<(), Self> {
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Self::Invalid(violations))
        }
    }
}

impl storage::WriteError for Error {
    fn as_storage(&self) -> Option<&storage::Error> {
        match self {
            Self::Storage(error) => Some(error),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    #[error("an access token is required: send Authorization: Bearer <access_token>")]
    NoToken,
    /// `Authorization` without the scheme `Bearer`.
    #[error("Authorization must start with \"Bearer \", followed by the access token")]
    NotBearer,
    #[error("the access token is not valid")]
    InvalidToken,
    #[error("the access token has expired; get a new one")]
    ExpiredToken,
    /// Unknown key, wrong secret or disabled client; callers must not be able to tell which.
    #[error("the client is unknown, disabled, or its secret is wrong")]
    InvalidClient,
}

impl Unauthenticated {
    const fn reason(self) -> &'static str {
        match self {
            Self::NoToken | Self::NotBearer => "TOKEN_MISSING",
            Self::InvalidToken => "TOKEN_INVALID",
            Self::ExpiredToken => "TOKEN_EXPIRED",
            Self::InvalidClient => "INVALID_CLIENT",
        }
    }
}

/// Default of the retry delay suggested to clients.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let (code, reason) = match &error {
            Error::Invalid(_) => (Code::InvalidArgument, "VALIDATION_FAILED"),
            Error::InvalidName(..) => (Code::InvalidArgument, "INVALID_NAME"),
            Error::PriceMismatch(_) => (Code::InvalidArgument, "PRICE_MISMATCH"),
            Error::InvalidScope(_) => (Code::InvalidArgument, "INVALID_SCOPE"),
            Error::Unauthenticated(why) => (Code::Unauthenticated, why.reason()),
            Error::Forbidden { .. } => (Code::PermissionDenied, "INSUFFICIENT_SCOPE"),
            Error::NoStore => (Code::PermissionDenied, "NO_STORE"),
            Error::StoreDisabled => (Code::PermissionDenied, "STORE_DISABLED"),
            Error::NotFound(_) => (Code::NotFound, "NOT_FOUND"),
            Error::ExternalReferenceTaken { .. } => {
                (Code::AlreadyExists, "EXTERNAL_REFERENCE_TAKEN")
            }
            Error::SlotFull => (Code::FailedPrecondition, "TIME_SLOT_REFUSED"),
            Error::Conflict(reason, _) => (Code::FailedPrecondition, *reason),
            Error::ListsChanged(_) => (Code::FailedPrecondition, LISTS_CHANGED),
            Error::IdempotencyKeyReused => (Code::FailedPrecondition, "IDEMPOTENCY_KEY_REUSED"),
            Error::IdempotencyKeyInUse => (Code::Aborted, "IDEMPOTENCY_KEY_IN_USE"),
            Error::PriceNotCalculated { .. } => (Code::FailedPrecondition, "PRICE_NOT_CALCULATED"),
            Error::Expired(reason, _) => (Code::OutOfRange, *reason),
            Error::Quota(reason, _) => (Code::ResourceExhausted, *reason),
            Error::DeliveryQuota { .. } => (Code::ResourceExhausted, "TOO_MANY_DELIVERIES"),
            Error::RateLimited { .. } | Error::TooManyCalls { .. } => {
                (Code::ResourceExhausted, "TOO_MANY_REQUESTS")
            }
            Error::Storage(storage::Error::Overloaded) => (Code::ResourceExhausted, "OVERLOADED"),
            // Nothing has been written.
            Error::Storage(error) if error.is_read_only() => {
                (Code::Unavailable, proto::NOT_EXECUTED)
            }
            Error::Storage(
                storage::Error::Unavailable(_)
                | storage::Error::SerializationFailure(_)
                | storage::Error::Timeout
                | storage::Error::WriterStopped
                | storage::Error::LogNotTruncated
                | storage::Error::RolledBack,
            )
            | Error::SecretBox(secret_box::Error::UnknownKey { .. })
            | Error::ShuttingDown => (Code::Unavailable, "UNAVAILABLE"),
            // Each occurs before anything is written.
            Error::DefinitionChanged
            | Error::NoDispatcher
            | Error::Geocoding(_)
            | Error::Images(_)
            | Error::Routing(_) => (Code::Unavailable, proto::NOT_EXECUTED),
            Error::Storage(
                storage::Error::Database(_)
                | storage::Error::Inconsistent { .. }
                | storage::Error::Misconfigured(_)
                | storage::Error::NotReady(_)
                | storage::Error::Panicked(_),
            )
            | Error::SecretBox(secret_box::Error::Undecryptable)
            | Error::Bug(_) => (Code::Internal, "INTERNAL"),
        };
        let message = match code {
            Code::Internal => {
                tracing::error!(error = %error_chain(&error), "request failed");
                "something went wrong on our side".to_owned()
            }
            Code::Unavailable if matches!(error, Error::ShuttingDown) => message,
            Code::Unavailable => {
                tracing::warn!(error = %error_chain(&error), "request failed temporarily");
                remedy(&error).unwrap_or_else(|| {
                    "the service is not available at the moment; try again".to_owned()
                })
            }
            Code::ResourceExhausted if reason == "OVERLOADED" => {
                "the service is overloaded at the moment; try again".to_owned()
            }
            _ => message,
        };
        Self::with_error_details(code, message, details(error, code, reason))
    }
}

/// What an operator must do for a core that cannot geocode.
pub(crate) const GEOCODING_REMEDY: &str = "run `delivery addresses import FILE…`, give the core another --geocoder, or `--geocoder none` if all addresses have points";

/// What an operator must do about an error that does not pass by itself. The gateway has a message
/// of its own for shops.
fn remedy(error: &Error) -> Option<String> {
    match error {
        Error::NoDispatcher => Some(format!(
            "{error}: start a webhook-dispatcher with this core in its --core-url"
        )),
        Error::SecretBox(error @ secret_box::Error::UnknownKey { .. }) => Some(error.to_string()),
        Error::Geocoding(error) => error.missing_index().map(|cause| {
            format!("core cannot geocode: {cause}; {GEOCODING_REMEDY}")
        }),
        Error::Storage(error) if error.is_read_only() => Some(
            "the database accepts no writes: promote the standby, or name the primary in the database URL of the core; a file must be writable by it".to_owned(),
        ),
        _ => None,
    }
}

fn details(error: Error, code: Code, reason: &str) -> ErrorDetails {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, ERROR_DOMAIN, HashMap::new());
    let retry_delay = match &error {
        Error::Routing(error) => error.retry_after().unwrap_or(RETRY_DELAY),
        Error::RateLimited { retry_after, .. } | Error::DeliveryQuota { retry_after, .. } => {
            *retry_after
        }
        _ => RETRY_DELAY,
    };
    match error {
        Error::Invalid(violations) | Error::PriceMismatch(violations) => {
            let violations: Vec<_> = violations.into_iter().map(field_violation).collect();
            details.set_bad_request(violations);
        }
        Error::Forbidden { scope } => {
            let metadata = HashMap::from([("scope".to_owned(), scope.to_string())]);
            details.set_error_info(reason, ERROR_DOMAIN, metadata);
        }
        Error::ExternalReferenceTaken { existing, .. } => {
            let metadata = HashMap::from([("existing".to_owned(), existing)]);
            details.set_error_info(reason, ERROR_DOMAIN, metadata);
        }
        Error::ListsChanged(lists) => {
            for changed in lists {
                let description = changed.description();
                let list = changed.name();
                details.add_precondition_failure_violation("LIST", list, description);
            }
        }
        Error::PriceNotCalculated { rules } => {
            for (rule, why) in rules {
                details.add_precondition_failure_violation("RULE", rule, why);
            }
        }
        _ => {}
    }
    if matches!(code, Code::Unavailable | Code::Aborted)
        || matches!(
            reason,
            "OVERLOADED" | "TOO_MANY_REQUESTS" | "TOO_MANY_DELIVERIES"
        )
    {
        details.set_retry_info(Some(retry_delay));
    }
    details
}

fn field_violation(violation: Violation) -> FieldViolation {
    let mut field_violation = FieldViolation::new(violation.field, violation.description);
    field_violation.reason = violation.reason.into_owned();
    field_violation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_platform_does_not_show_its_cause() {
        for (error, expected) in [
            (
                Error::Storage(storage::Error::Timeout),
                "the service is not available at the moment; try again",
            ),
            (
                Error::Storage(storage::Error::Panicked("a cause".to_owned())),
                "something went wrong on our side",
            ),
            (
                Error::Bug("a cause".to_owned()),
                "something went wrong on our side",
            ),
        ] {
            assert_eq!(Status::from(error).message(), expected);
        }
    }
}
