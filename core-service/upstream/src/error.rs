//! Why a call failed.

use std::time::Duration;

use http::{StatusCode, uri::InvalidUri};
use hyper_util::client::legacy;

/// All but `InvalidUrl` may be transient.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the URL is not a valid request URI")]
    InvalidUrl(#[source] InvalidUri),
    #[error("too many requests in flight")]
    Busy,
    /// After consecutive failures, or a `Retry-After`.
    #[error("the circuit breaker is open for another {0:?}")]
    CircuitOpen(Duration),
    #[error("no response within {0:?}")]
    Timeout(Duration),
    #[error("no response")]
    NoResponse(#[source] legacy::Error),
    #[error("the response is incomplete")]
    IncompleteResponse(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the response is longer than {0} bytes")]
    ResponseTooLarge(usize),
    #[error("the response status is {status}")]
    Status {
        status: StatusCode,
        /// The response's `Retry-After`.
        retry_after: Option<Duration>,
    },
}

impl Error {
    /// How long to wait until a retry may succeed, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CircuitOpen(wait) => Some(*wait),
            Self::Status { retry_after, .. } => *retry_after,
            Self::InvalidUrl(_)
            | Self::Busy
            | Self::Timeout(_)
            | Self::NoResponse(_)
            | Self::IncompleteResponse(_)
            | Self::ResponseTooLarge(_) => None,
        }
    }
}
