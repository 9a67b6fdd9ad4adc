//! Errors of requests. `grpc_status` translates core's errors into them, `problem` renders them.

use serde::Serialize;
use tonic::Status;
use tower::BoxError;

use crate::error_codes::{self as codes, ErrorCode};

/// `Retry-After` when the gateway or core is overloaded or unavailable.
pub(crate) const BUSY_RETRY_SECONDS: u64 = 1;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the request is invalid")]
    Invalid {
        /// Lower snake case; empty for the default code.
        code: String,
        violations: Vec<Violation>,
    },
    #[error("The delivery price could not be calculated.")]
    PriceNotCalculated(Vec<RuleOutcome>),
    #[error("{}", .0.message)]
    Unauthenticated(ErrorDetail),
    #[error("{}", .detail.message)]
    Forbidden { detail: ErrorDetail, scope: String },
    #[error("{}", .0.message)]
    NotFound(ErrorDetail),
    #[error("the method must be one of {allow}")]
    MethodNotAllowed { allow: String },
    #[error("the response can only be application/ld+json or application/json")]
    NotAcceptable,
    #[error("the body did not arrive in time")]
    RequestTimeout,
    #[error("{}", .detail.message)]
    Conflict {
        detail: ErrorDetail,
        /// The name of the conflicting resource.
        existing: Option<String>,
        /// In seconds.
        retry_after: Option<u64>,
    },
    #[error("{}", .0.message)]
    IdempotencyKeyReused(ErrorDetail),
    #[error("{}", .0.message)]
    Gone(ErrorDetail),
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("an If-Match other than `*` cannot be met: all entity tags are weak")]
    PreconditionFailed,
    #[error("{0}")]
    UnsupportedMediaType(&'static str),
    #[error("the request target is longer than {limit} bytes")]
    TargetTooLong { limit: usize },
    #[error("more than {count} headers, or more than {size} bytes of them")]
    HeadersTooLarge { count: usize, size: usize },
    #[error("{}", .detail.message)]
    LimitExceeded {
        detail: ErrorDetail,
        retry_after: u64,
    },
    #[error("the platform is busy")]
    Overloaded { retry_after: u64 },
    #[error("the platform cannot be reached right now")]
    Unavailable {
        #[source]
        status: Box<Status>,
        retry_after: u64,
    },
    #[error("the response was not ready in time")]
    DeadlineExceeded,
    #[error("something went wrong on our side")]
    Internal(#[source] BoxError),
    /// Logged where it was caught.
    #[error("something went wrong on our side")]
    Panic,
}

/// An invalid part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// The client's name of the part; core's name until `ViolationCollector::translate`.
    #[serde(rename = "propertyPath")]
    pub(crate) path: String,
    pub(crate) message: String,
    /// Lower snake case.
    pub(crate) code: String,
}

/// The outcome of a price list's rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RuleOutcome {
    pub(crate) rule: String,
    pub(crate) matched: bool,
    pub(crate) reason: String,
    /// The amount that the rule added, including tax, in minor units.
    pub(crate) amount: i64,
}

/// A code for programs and a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorDetail {
    /// Lower snake case; empty for the default code.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Error {
    /// An unknown path.
    pub(crate) fn no_such_path() -> Self {
        Self::not_found("there is no such path; see /api/docs")
    }

    /// A whole `@id` in place of an id in the path.
    pub(crate) fn iri_in_path() -> Self {
        Self::not_found("use the id alone, not the whole @id")
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self::NotFound(ErrorDetail::new(&codes::NOT_FOUND, message))
    }

    /// A request with a body that lacks its token; in core's words.
    pub(crate) fn missing_token() -> Self {
        Self::Unauthenticated(ErrorDetail::new(
            &codes::TOKEN_MISSING,
            "an access token is required: send Authorization: Bearer <access_token>",
        ))
    }

    /// An `Authorization` header that is rejected without a call to core.
    pub(crate) fn malformed_token() -> Self {
        Self::Unauthenticated(ErrorDetail::new(
            &codes::TOKEN_INVALID,
            "the Authorization header must be one line of at most 8192 visible ASCII characters",
        ))
    }

    /// A body that is not well-formed HTTP, such as a malformed chunk (RFC 9112 §7.1).
    pub(crate) fn malformed_body() -> Self {
        Self::invalid_http("", "malformed", "the body is not well-formed HTTP")
    }

    /// A header, or with an empty name another part of the request, that HTTP does not permit.
    pub(crate) fn invalid_http(header: &str, code: &str, message: &str) -> Self {
        Self::Invalid {
            code: String::new(),
            violations: vec![Violation {
                path: header.to_owned(),
                message: message.to_owned(),
                code: code.to_owned(),
            }],
        }
    }

    /// A limit of the gateway itself is reached.
    pub(crate) fn overloaded() -> Self {
        Self::Overloaded {
            retry_after: BUSY_RETRY_SECONDS,
        }
    }

    /// No core is reachable and connected to its database.
    pub(crate) fn not_ready() -> Self {
        Self::unavailable(
            Status::unavailable("no core was ready in time"),
            BUSY_RETRY_SECONDS,
        )
    }

    /// More requests than the quota permits in its window. Both times are in seconds.
    pub(crate) fn rate_limited((quota, window): (u32, u64), retry_after: u64) -> Self {
        let message = format!("more than {quota} requests in {window} s");
        Self::LimitExceeded {
            detail: ErrorDetail::new(&codes::TOO_MANY_REQUESTS, &message),
            retry_after,
        }
    }

    pub(crate) fn unavailable(status: Status, retry_after: u64) -> Self {
        Self::Unavailable {
            status: Box::new(status),
            retry_after,
        }
    }

    /// A message of core lacks a required field.
    pub(crate) fn incomplete(missing: &'static str) -> Self {
        Self::Internal(format!("core did not send {missing}").into())
    }

    /// The code of an error without a specific one.
    pub(crate) fn default_code(&self) -> &'static ErrorCode {
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
            Self::IdempotencyKeyReused(_) => &codes::IDEMPOTENCY_KEY_REUSED,
            Self::Gone(_) => &codes::EVENTS_EXPIRED,
            Self::TooLarge { .. } => &codes::PAYLOAD_TOO_LARGE,
            Self::PreconditionFailed => &codes::PRECONDITION_FAILED,
            Self::UnsupportedMediaType(_) => &codes::UNSUPPORTED_MEDIA_TYPE,
            Self::TargetTooLong { .. } => &codes::URI_TOO_LONG,
            Self::HeadersTooLarge { .. } => &codes::HEADERS_TOO_LARGE,
            Self::LimitExceeded { .. } => &codes::TOO_MANY_REQUESTS,
            Self::Overloaded { .. } => &codes::OVERLOADED,
            Self::Unavailable { .. } => &codes::UNAVAILABLE,
            Self::DeadlineExceeded => &codes::DEADLINE_EXCEEDED,
            Self::Internal(_) | Self::Panic => &codes::INTERNAL,
        }
    }

    /// The code that the error itself contains, if any.
    pub(crate) fn specific_code(&self) -> Option<&str> {
        match self {
            Self::Invalid { code, .. } => Some(code.as_str()),
            Self::Unauthenticated(detail)
            | Self::Forbidden { detail, .. }
            | Self::NotFound(detail)
            | Self::Conflict { detail, .. }
            | Self::IdempotencyKeyReused(detail)
            | Self::Gone(detail)
            | Self::LimitExceeded { detail, .. } => Some(detail.code.as_str()),
            Self::PriceNotCalculated(_)
            | Self::MethodNotAllowed { .. }
            | Self::NotAcceptable
            | Self::RequestTimeout
            | Self::TooLarge { .. }
            | Self::PreconditionFailed
            | Self::UnsupportedMediaType(_)
            | Self::TargetTooLong { .. }
            | Self::HeadersTooLarge { .. }
            | Self::Overloaded { .. }
            | Self::Unavailable { .. }
            | Self::DeadlineExceeded
            | Self::Internal(_)
            | Self::Panic => None,
        }
        .filter(|code| !code.is_empty())
    }
}

impl ErrorDetail {
    fn new(code: &ErrorCode, message: &str) -> Self {
        Self {
            code: code.code.to_owned(),
            message: message.to_owned(),
        }
    }
}
