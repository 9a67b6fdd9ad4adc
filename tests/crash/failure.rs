//! Why a request of a `Caller` failed, and whether a fault explains it.

use std::{error::Error, fmt};

use serde_json::Value;

use crate::caller::TIMEOUT;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No gateway accepts connections.
    ConnectionRefused(hyper_util::client::legacy::Error),
    /// The connection broke; the request may have been processed.
    ConnectionLost(hyper_util::client::legacy::Error),
    /// The connection broke during the response.
    IncompleteResponse(hyper::Error),
    /// No response within the timeout.
    Timeout,
    ErrorResponse {
        status: u16,
        /// Seconds.
        retry_after: Option<u64>,
        body: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionRefused(error) => {
                write!(f, "no gateway accepts connections: {error:?}")
            }
            Self::ConnectionLost(error) => write!(f, "the connection broke: {error:?}"),
            Self::IncompleteResponse(error) => write!(f, "the response is incomplete: {error:?}"),
            Self::Timeout => write!(f, "no response within {TIMEOUT:?}"),
            Self::ErrorResponse { status, body, .. } => write!(f, "{status} {body}"),
        }
    }
}

impl Error for Failure {}

impl Failure {
    /// Whether a caller may get this when the process it talks to is killed: no response, or a
    /// retryable error. A timeout or any other error is not expected.
    pub(crate) fn is_expected_after_a_kill(&self) -> bool {
        match self {
            Self::ConnectionRefused(_) | Self::ConnectionLost(_) | Self::IncompleteResponse(_) => {
                true
            }
            Self::Timeout => false,
            Self::ErrorResponse { .. } => self.is_retryable(),
        }
    }

    /// Whether this is a retryable error with `Retry-After`: 503, or 409 while a request with the
    /// same idempotency key is in flight.
    pub(crate) fn is_retryable(&self) -> bool {
        let Self::ErrorResponse {
            status,
            retry_after: Some(1..=60),
            body,
        } = self
        else {
            return false;
        };
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        body["@type"] == "hydra:Error"
            && body["status"] == *status
            && body["retryable"] == true
            && matches!(
                (status, body["code"].as_str()),
                (503, Some("unavailable" | "overloaded")) | (409, Some("idempotency_key_in_use"))
            )
    }
}
