//! Everything that can go wrong with a request, and the one translation from gRPC statuses.

use std::{error::Error as StdError, iter};

use serde::Serialize;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, StatusExt};
use tower::BoxError;

use crate::{
    error_codes::{self as codes, ErrorCode},
    resources::retail_prices::RuleOutcome,
};

/// When core says that something is used up, but not until when.
const QUOTA_RETRY_SECONDS: u64 = 60;
/// When something is too busy or away.
const BUSY_RETRY_SECONDS: u64 = 1;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the request breaks rules")]
    Invalid {
        /// Lower snake case; empty for the general one.
        code: String,
        violations: Vec<Violation>,
    },
    #[error("The delivery price could not be calculated.")]
    PriceNotCalculated(Vec<RuleOutcome>),
    #[error("{}", .0.message)]
    Unauthenticated(Refusal),
    #[error("{}", .refusal.message)]
    Forbidden { refusal: Refusal, scope: String },
    #[error("{}", .0.message)]
    NotFound(Refusal),
    #[error("the method is not one of {allow}")]
    MethodNotAllowed { allow: String },
    #[error("only application/ld+json and application/json can be served here")]
    NotAcceptable,
    #[error("the body did not arrive in time")]
    RequestTimeout,
    #[error("{}", .refusal.message)]
    Conflict {
        refusal: Refusal,
        /// The name of the resource that stands in the way.
        existing: Option<String>,
        /// When it may be over.
        retry_after: Option<u64>,
    },
    #[error("{}", .0.message)]
    KeyReused(Refusal),
    #[error("{}", .0.message)]
    Gone(Refusal),
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("{0}")]
    UnsupportedMediaType(&'static str),
    #[error("{}", .refusal.message)]
    Exhausted { refusal: Refusal, retry_after: u64 },
    #[error("the platform is busy")]
    Overloaded { retry_after: u64 },
    #[error("the platform cannot be reached right now")]
    Unavailable {
        #[source]
        status: Box<Status>,
        retry_after: u64,
    },
    #[error("the answer was not ready in time")]
    Timeout,
    #[error("something went wrong on our side")]
    Internal(#[source] BoxError),
    /// Logged where it was caught.
    #[error("something went wrong on our side")]
    Panic,
}

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// In the client's words; as core names it until a resource has translated it.
    #[serde(rename = "propertyPath")]
    pub(crate) path: String,
    pub(crate) message: String,
    /// Lower snake case.
    pub(crate) code: String,
}

/// A reason of core's, which clients know as a code, and its words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Lower snake case; empty if core gave none.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Error {
    /// Nothing at a path.
    pub(crate) fn no_such_path() -> Self {
        Self::NotFound(Refusal::general(&codes::NOT_FOUND, "there is nothing here"))
    }

    /// An access token that no core need look at.
    pub(crate) fn unreadable_token() -> Self {
        Self::Unauthenticated(Refusal::general(
            &codes::TOKEN_INVALID,
            "the Authorization header is not one line of at most 8192 visible ASCII characters",
        ))
    }

    /// A body that broke the rules of HTTP on its way (RFC 9112 §7.1, for one).
    pub(crate) fn malformed_body() -> Self {
        Self::Invalid {
            code: String::new(),
            violations: vec![Violation {
                path: String::new(),
                message: "the body is not well-formed HTTP".to_owned(),
                code: "malformed".to_owned(),
            }],
        }
    }

    /// The gateway itself has more to do than it may.
    pub(crate) fn overloaded() -> Self {
        Self::Overloaded {
            retry_after: BUSY_RETRY_SECONDS,
        }
    }

    /// No core answers, or none that has its database.
    pub(crate) fn not_ready() -> Self {
        unavailable(
            Status::unavailable("no core was ready in time"),
            BUSY_RETRY_SECONDS,
        )
    }

    /// More requests than the quota in its window (in seconds) permits; again after so many
    /// seconds.
    pub(crate) fn rate_limited((quota, window): (u32, u64), retry_after: u64) -> Self {
        let message = format!("more than {quota} requests in {window} s");
        Self::Exhausted {
            refusal: Refusal::general(&codes::TOO_MANY_REQUESTS, &message),
            retry_after,
        }
    }

    /// Core broke the contract: a message without what it always has.
    pub(crate) fn incomplete(what: &'static str) -> Self {
        Self::Internal(format!("core left out {what}").into())
    }

    /// The entry of the list of codes that fits every error of this kind.
    pub(crate) fn general_code(&self) -> &'static ErrorCode {
        match self {
            Self::Invalid { .. } => &codes::VALIDATION_FAILED,
            Self::PriceNotCalculated(_) => &codes::PRICE_NOT_CALCULATED,
            Self::Unauthenticated(_) => &codes::UNAUTHENTICATED,
            Self::Forbidden { .. } => &codes::INSUFFICIENT_SCOPE,
            Self::NotFound(_) => &codes::NOT_FOUND,
            Self::MethodNotAllowed { .. } => &codes::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => &codes::NOT_ACCEPTABLE,
            Self::RequestTimeout => &codes::REQUEST_TIMEOUT,
            Self::Conflict { .. } => &codes::CONFLICT,
            Self::KeyReused(_) => &codes::IDEMPOTENCY_KEY_REUSED,
            Self::Gone(_) => &codes::EVENTS_EXPIRED,
            Self::TooLarge { .. } => &codes::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType(_) => &codes::UNSUPPORTED_MEDIA_TYPE,
            Self::Exhausted { .. } => &codes::TOO_MANY_REQUESTS,
            Self::Overloaded { .. } => &codes::OVERLOADED,
            Self::Unavailable { .. } => &codes::UNAVAILABLE,
            Self::Timeout => &codes::DEADLINE_EXCEEDED,
            Self::Internal(_) | Self::Panic => &codes::INTERNAL,
        }
    }

    /// The code core gave, if it gave one.
    pub(crate) fn particular_code(&self) -> Option<&str> {
        match self {
            Self::Invalid { code, .. } => Some(code.as_str()),
            Self::Unauthenticated(refusal)
            | Self::Forbidden { refusal, .. }
            | Self::NotFound(refusal)
            | Self::Conflict { refusal, .. }
            | Self::KeyReused(refusal)
            | Self::Gone(refusal)
            | Self::Exhausted { refusal, .. } => Some(refusal.code.as_str()),
            Self::PriceNotCalculated(_)
            | Self::MethodNotAllowed { .. }
            | Self::NotAcceptable
            | Self::RequestTimeout
            | Self::TooLarge { .. }
            | Self::UnsupportedMediaType(_)
            | Self::Overloaded { .. }
            | Self::Unavailable { .. }
            | Self::Timeout
            | Self::Internal(_)
            | Self::Panic => None,
        }
        .filter(|code| !code.is_empty())
    }
}

impl Refusal {
    fn general(code: &ErrorCode, message: &str) -> Self {
        Self {
            code: code.code.to_owned(),
            message: message.to_owned(),
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        // A status with a source was made here, of a failure to reach core.
        if is_caused_by::<TimeoutExpired>(&status) {
            return Self::Timeout;
        }
        if status.source().is_some() {
            return unavailable(status, BUSY_RETRY_SECONDS);
        }
        let details = status.get_error_details();
        let retry_after = retry_after(&details);
        let refusal = || Refusal {
            code: reason(&details).to_ascii_lowercase(),
            message: status.message().to_owned(),
        };

        match status.code() {
            Code::OutOfRange if reason(&details) == "EVENTS_EXPIRED" => Self::Gone(refusal()),
            Code::InvalidArgument | Code::OutOfRange => Self::Invalid {
                code: reason(&details).to_ascii_lowercase(),
                violations: violations(&status, &details),
            },
            Code::Unauthenticated => Self::Unauthenticated(refusal()),
            Code::PermissionDenied => Self::Forbidden {
                refusal: refusal(),
                scope: metadata(&details, "scope").to_owned(),
            },
            Code::NotFound => Self::NotFound(refusal()),
            Code::FailedPrecondition if reason(&details) == "PRICE_NOT_CALCULATED" => {
                Self::PriceNotCalculated(calculation(&details))
            }
            Code::FailedPrecondition if reason(&details) == "IDEMPOTENCY_KEY_REUSED" => {
                Self::KeyReused(refusal())
            }
            Code::FailedPrecondition | Code::AlreadyExists => Self::Conflict {
                refusal: refusal(),
                existing: Some(metadata(&details, "existing").to_owned())
                    .filter(|name| !name.is_empty()),
                retry_after: None,
            },
            Code::Aborted if reason(&details) == "IDEMPOTENCY_KEY_IN_USE" => Self::Conflict {
                refusal: refusal(),
                existing: None,
                retry_after,
            },
            Code::ResourceExhausted if reason(&details) == "OVERLOADED" => Self::Overloaded {
                retry_after: retry_after.unwrap_or(BUSY_RETRY_SECONDS),
            },
            Code::ResourceExhausted => Self::Exhausted {
                refusal: refusal(),
                retry_after: retry_after.unwrap_or(QUOTA_RETRY_SECONDS),
            },
            // Cancelled by core, that is: it is stopping.
            Code::Unavailable | Code::Aborted | Code::Cancelled => {
                unavailable(status, retry_after.unwrap_or(BUSY_RETRY_SECONDS))
            }
            Code::DeadlineExceeded => Self::Timeout,
            Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => {
                Self::Internal(Box::new(status))
            }
        }
    }
}

/// Whether an error is among the causes of a status.
pub(crate) fn is_caused_by<E: StdError + 'static>(status: &Status) -> bool {
    causes(status).any(<dyn StdError>::is::<E>)
}

/// What led to a status, the nearest first.
pub(crate) fn causes(status: &Status) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    iter::successors(status.source(), |&error| error.source())
}

fn unavailable(status: Status, retry_after: u64) -> Error {
    Error::Unavailable {
        status: Box::new(status),
        retry_after,
    }
}

fn reason(details: &ErrorDetails) -> &str {
    details.error_info().map_or("", |info| info.reason.as_str())
}

fn metadata<'d>(details: &'d ErrorDetails, key: &str) -> &'d str {
    details
        .error_info()
        .and_then(|info| info.metadata.get(key))
        .map_or("", String::as_str)
}

/// In whole seconds, upwards: a client that comes back as told is not too early.
fn retry_after(details: &ErrorDetails) -> Option<u64> {
    let delay = details.retry_info()?.retry_delay?;
    let seconds = delay
        .as_secs()
        .saturating_add(u64::from(delay.subsec_nanos() > 0));
    Some(seconds.max(1))
}

fn violations(status: &Status, details: &ErrorDetails) -> Vec<Violation> {
    let violations: Vec<_> = details
        .bad_request()
        .into_iter()
        .flat_map(|bad_request| &bad_request.field_violations)
        .map(|violation| Violation {
            path: violation.field.clone(),
            message: violation.description.clone(),
            code: violation.reason.to_ascii_lowercase(),
        })
        .collect();
    if !violations.is_empty() {
        return violations;
    }
    vec![Violation {
        path: String::new(),
        message: status.message().to_owned(),
        code: reason(details).to_ascii_lowercase(),
    }]
}

fn calculation(details: &ErrorDetails) -> Vec<RuleOutcome> {
    details
        .precondition_failure()
        .into_iter()
        .flat_map(|failure| &failure.violations)
        .filter(|violation| violation.r#type == "RULE")
        .map(|violation| RuleOutcome {
            rule: violation.subject.clone(),
            matched: false,
            reason: violation.description.clone(),
            amount: 0,
        })
        .collect()
}
