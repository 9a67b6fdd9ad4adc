//! Translates gRPC statuses into errors.

use core_client::is_caused_by;
use proto::{ERROR_DOMAIN, RuleOutcome};
use rate_limits::seconds_rounded_up;
use std::error::Error as _;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    error::{BUSY_RETRY_SECONDS, Details, Error, Violation},
    representation::error_codes as codes,
};

/// `Retry-After` when core reports an exhausted quota without a delay.
const QUOTA_RETRY_SECONDS: u64 = 60;

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
