//! Errors of requests. `grpc_status` translates core's errors into them, `problem` renders them.

use std::borrow::Cow;

use proto::RuleOutcome;
use serde::{Deserialize, Serialize};
use tonic::Status;
use tower::BoxError;

use crate::representation::error_codes::{self as codes, ErrorCode};

/// `Retry-After` when the gateway or core is overloaded or unavailable.
pub(crate) const BUSY_RETRY_SECONDS: u64 = 1;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Error {
    pub(crate) kind: &'static ErrorCode,
    /// That of `kind`, or a code of a newer core that the table does not have.
    pub(crate) code: Cow<'static, str>,
    /// The text for people. With violations, the response has their messages instead.
    pub(crate) message: String,
    pub(crate) details: Details,
    /// About the body of the request.
    pub(crate) warnings: Box<[Violation]>,
    /// The cause, which only the log has.
    pub(crate) source: Option<BoxError>,
}

/// What the response has in addition to the code and the message.
#[derive(Debug)]
pub(crate) enum Details {
    None,
    Violations(Vec<Violation>),
    /// The outcome of each rule of the price list.
    Calculation(Vec<RuleOutcome>),
    /// The name of the conflicting resource.
    Existing(String),
    /// The missing scope; empty if it is unknown.
    Scope(String),
    /// The methods of the path.
    Allow(String),
    /// The seconds until another attempt may succeed.
    RetryAfter(u64),
}

/// An invalid part of a request; or, as a warning, a valid part that has no effect or may be a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Violation {
    /// The client's name of the part; core's name until `ViolationCollector::in_client_names`.
    #[serde(rename = "propertyPath")]
    pub(crate) path: String,
    pub(crate) message: String,
    /// The code of a violation or a warning, in lower snake case.
    pub(crate) code: String,
}

impl Error {
    pub(crate) fn new(kind: &'static ErrorCode, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: Cow::Borrowed(kind.code),
            message: message.into(),
            details: Details::None,
            warnings: Box::default(),
            source: None,
        }
    }

    /// An error with a code of core. If the table does not have it with the status of `default`, the
    /// error is explained as `default`.
    pub(crate) fn from_core(default: &'static ErrorCode, code: String, message: &str) -> Self {
        let known = codes::find(&code).filter(|known| known.status == default.status);
        let error = Self::new(known.unwrap_or(default), message);
        match code.as_str() {
            "" => error,
            _ => Self {
                code: Cow::Owned(code),
                ..error
            },
        }
    }

    pub(crate) fn with(self, details: Details) -> Self {
        Self { details, ..self }
    }

    pub(crate) fn invalid(violations: Vec<Violation>) -> Self {
        Self::new(&codes::VALIDATION_FAILED, "the request is invalid")
            .with(Details::Violations(violations))
    }

    /// An unknown path.
    pub(crate) fn no_such_path() -> Self {
        Self::new(&codes::NOT_FOUND, "there is no such path; see /api/docs")
    }

    /// An `Authorization` header that is rejected without a call to core.
    pub(crate) fn malformed_token() -> Self {
        Self::new(
            &codes::TOKEN_INVALID,
            "the Authorization header must be one line of at most 8192 visible ASCII characters",
        )
    }

    /// A header, or with an empty name another part of the request, that HTTP does not permit.
    pub(crate) fn invalid_http(header: &str, code: &str, message: &str) -> Self {
        Self::invalid(vec![Violation {
            path: header.to_owned(),
            message: message.to_owned(),
            code: code.to_owned(),
        }])
    }

    /// The body of the request did not arrive in time.
    pub(crate) fn request_timeout() -> Self {
        Self::new(&codes::REQUEST_TIMEOUT, "the body did not arrive in time")
    }

    /// A limit of the gateway itself is reached.
    pub(crate) fn overloaded() -> Self {
        Self::overloaded_for(BUSY_RETRY_SECONDS)
    }

    /// The gateway, core or a proxy before it is at capacity. The time is in seconds.
    pub(crate) fn overloaded_for(retry_after: u64) -> Self {
        Self::new(&codes::OVERLOADED, "the platform is busy").with(Details::RetryAfter(retry_after))
    }

    pub(crate) fn unavailable(status: Status, retry_after: u64) -> Self {
        Self {
            details: Details::RetryAfter(retry_after),
            source: Some(status.into()),
            ..Self::new(
                &codes::UNAVAILABLE,
                "the platform cannot be reached right now",
            )
        }
    }

    pub(crate) fn deadline_exceeded() -> Self {
        Self::new(
            &codes::DEADLINE_EXCEEDED,
            "the response was not ready in time",
        )
    }

    pub(crate) fn internal(source: impl Into<BoxError>) -> Self {
        Self {
            source: Some(source.into()),
            ..Self::panic()
        }
    }

    /// A panic, logged where it was caught.
    pub(crate) fn panic() -> Self {
        Self::new(&codes::INTERNAL, "something went wrong on our side")
    }

    /// A message of core lacks a required field.
    pub(crate) fn incomplete(missing: &'static str) -> Self {
        Self::internal(format!("core did not send {missing}"))
    }
}
