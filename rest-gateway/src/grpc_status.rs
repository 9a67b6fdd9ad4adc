//! Translates gRPC statuses into errors.

use core_client::is_caused_by;
use proto::ERROR_DOMAIN;
use std::error::Error as _;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::{ErrorDetails, StatusExt};

use crate::error::{BUSY_RETRY_SECONDS, Error, ErrorDetail, RuleOutcome, Violation};

/// `Retry-After` when core reports an exhausted quota without a delay.
const QUOTA_RETRY_SECONDS: u64 = 60;

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        // A status with a source was created by tonic, not by core: the call timed out, or got no
        // response from core.
        if is_caused_by::<TimeoutExpired>(&status) {
            return Self::DeadlineExceeded;
        }
        if status.source().is_some() {
            return Error::unavailable(status, BUSY_RETRY_SECONDS);
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
        // tonic, such as for a message over its limit, or a proxy: not the client's fault.
        if !is_from_core && !is_temporary {
            return Self::Internal(Box::new(status));
        }
        let retry_after = retry_after(&details);
        let detail = || ErrorDetail {
            code: reason(&details).to_ascii_lowercase(),
            message: status.message().to_owned(),
        };

        match status.code() {
            Code::OutOfRange if reason(&details) == "EVENTS_EXPIRED" => Self::Gone(detail()),
            Code::InvalidArgument | Code::OutOfRange => Self::Invalid {
                code: reason(&details).to_ascii_lowercase(),
                violations: violations(&status, &details),
            },
            Code::Unauthenticated => Self::Unauthenticated(detail()),
            Code::PermissionDenied => Self::Forbidden {
                detail: detail(),
                scope: metadata(&details, "scope").to_owned(),
            },
            Code::NotFound => Self::NotFound(detail()),
            Code::FailedPrecondition if reason(&details) == "PRICE_NOT_CALCULATED" => {
                Self::PriceNotCalculated(calculation(&details))
            }
            Code::FailedPrecondition if reason(&details) == "IDEMPOTENCY_KEY_REUSED" => {
                Self::IdempotencyKeyReused(detail())
            }
            Code::FailedPrecondition | Code::AlreadyExists => Self::Conflict {
                detail: detail(),
                existing: Some(metadata(&details, "existing").to_owned())
                    .filter(|name| !name.is_empty()),
                retry_after: None,
            },
            Code::Aborted if reason(&details) == "IDEMPOTENCY_KEY_IN_USE" => Self::Conflict {
                detail: detail(),
                existing: None,
                retry_after,
            },
            // A proxy before core is overloaded, or core itself.
            Code::ResourceExhausted if !is_from_core || reason(&details) == "OVERLOADED" => {
                Self::Overloaded {
                    retry_after: retry_after.unwrap_or(BUSY_RETRY_SECONDS),
                }
            }
            Code::ResourceExhausted => Self::LimitExceeded {
                detail: detail(),
                retry_after: retry_after.unwrap_or(QUOTA_RETRY_SECONDS),
            },
            // Core cancels calls when it shuts down.
            Code::Unavailable | Code::Aborted | Code::Cancelled => {
                Error::unavailable(status, retry_after.unwrap_or(BUSY_RETRY_SECONDS))
            }
            Code::DeadlineExceeded => Self::DeadlineExceeded,
            Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => {
                Self::Internal(Box::new(status))
            }
        }
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

/// In whole seconds, rounded up, so that a client that waits as long does not retry too early.
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
