//! Errors of requests, and the translation of core's gRPC statuses into them. `problem` renders them.

use std::{borrow::Cow, error::Error as _};

use core_client::is_caused_by;
use proto::{ERROR_DOMAIN, RuleOutcome};
use rate_limits::seconds_rounded_up;
use serde::{Deserialize, Serialize};
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::BoxError;

use crate::representation::error_codes::{self as codes, ErrorCode};

/// `Retry-After` when the gateway or core is overloaded or unavailable.
const BUSY_RETRY_SECONDS: u64 = 1;
/// `Retry-After` when core reports an exhausted quota without a delay.
const QUOTA_RETRY_SECONDS: u64 = 60;

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
    fn from_core(default: &'static ErrorCode, code: String, message: &str) -> Self {
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
    fn overloaded_for(retry_after: u64) -> Self {
        Self::new(&codes::OVERLOADED, "the platform is busy").with(Details::RetryAfter(retry_after))
    }

    fn unavailable(status: Status, retry_after: u64) -> Self {
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

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        // A status with a source was created by tonic, not by core: the call timed out, or got no
        // response from core.
        if is_caused_by::<TimeoutExpired>(&status) {
            return Self::deadline_exceeded();
        }
        if status.source().is_some() {
            return Self::unavailable(status, BUSY_RETRY_SECONDS);
        }
        let details = status.get_error_details();
        let is_from_core = details
            .error_info()
            .is_some_and(|info| info.domain == ERROR_DOMAIN);
        let is_temporary = matches!(
            status.code(),
            Code::Unavailable
                | Code::Aborted
                | Code::Cancelled
                | Code::DeadlineExceeded
                | Code::ResourceExhausted
        );
        // By tonic, such as for a message over its limit, or by a proxy: not the client's fault.
        if !is_from_core && !is_temporary {
            return Self::internal(status);
        }
        let retry_after = retry_after(&details);
        let reason = details.error_info().map_or("", |info| &info.reason);
        let code = reason.to_ascii_lowercase();
        let error = |default| Self::from_core(default, code.clone(), status.message());

        match (status.code(), code.as_str()) {
            (Code::OutOfRange, "events_expired") => error(&codes::EVENTS_EXPIRED),
            // A path with such an id does not exist.
            (Code::InvalidArgument, "invalid_name") => {
                Self::new(&codes::NOT_FOUND, status.message())
            }
            (Code::InvalidArgument | Code::OutOfRange, _) => {
                let violations = violations(&status, &details, &code);
                error(&codes::VALIDATION_FAILED).with(Details::Violations(violations))
            }
            (Code::Unauthenticated, _) => error(&codes::UNAUTHENTICATED),
            (Code::PermissionDenied, _) => {
                let scope = metadata(&details, "scope").to_owned();
                error(&codes::INSUFFICIENT_SCOPE).with(Details::Scope(scope))
            }
            (Code::NotFound, _) => error(&codes::NOT_FOUND),
            (Code::FailedPrecondition, "price_not_calculated") => Self::new(
                &codes::PRICE_NOT_CALCULATED,
                "The delivery price could not be calculated.",
            )
            .with(Details::Calculation(calculation(&details))),
            (Code::FailedPrecondition, "idempotency_key_reused") => {
                error(&codes::IDEMPOTENCY_KEY_REUSED)
            }
            (Code::FailedPrecondition, "tracking_ended") => error(&codes::TRACKING_ENDED),
            (Code::FailedPrecondition | Code::AlreadyExists, _) => {
                error(&codes::CONFLICT).with(match metadata(&details, "existing") {
                    "" => Details::None,
                    name => Details::Existing(name.to_owned()),
                })
            }
            (Code::Aborted, "idempotency_key_in_use") => {
                error(&codes::CONFLICT).with(retry_after.map_or(Details::None, Details::RetryAfter))
            }
            // A proxy before core is overloaded, or core itself.
            (Code::ResourceExhausted, code) if !is_from_core || code == "overloaded" => {
                Self::overloaded_for(retry_after.unwrap_or(BUSY_RETRY_SECONDS))
            }
            (Code::ResourceExhausted, _) => error(&codes::TOO_MANY_REQUESTS).with(
                Details::RetryAfter(retry_after.unwrap_or(QUOTA_RETRY_SECONDS)),
            ),
            // Core cancels calls when it shuts down.
            (Code::Unavailable | Code::Aborted | Code::Cancelled, _) => {
                Self::unavailable(status, retry_after.unwrap_or(BUSY_RETRY_SECONDS))
            }
            (Code::DeadlineExceeded, _) => Self::deadline_exceeded(),
            (
                Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss,
                _,
            ) => Self::internal(status),
        }
    }
}

fn metadata<'d>(details: &'d ErrorDetails, key: &str) -> &'d str {
    details
        .error_info()
        .and_then(|info| info.metadata.get(key))
        .map_or("", String::as_str)
}

/// When core permits another attempt, in seconds from now.
fn retry_after(details: &ErrorDetails) -> Option<u64> {
    let delay = details.retry_info()?.retry_delay?;
    Some(seconds_rounded_up(delay))
}

fn violations(status: &Status, details: &ErrorDetails, code: &str) -> Vec<Violation> {
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
        code: code.to_owned(),
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
