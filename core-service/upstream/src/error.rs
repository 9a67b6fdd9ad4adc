//! Why a service gave no answer.

use std::time::Duration;

use http::{StatusCode, uri::InvalidUri};
use hyper_util::client::legacy;

/// All of these may be gone later, but for `Url`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the address cannot be called")]
    Url(#[source] InvalidUri),
    #[error("too many calls are under way")]
    Busy,
    /// It failed too often, or asked for it.
    #[error("the service is left alone for another {0:?}")]
    Resting(Duration),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("no answer")]
    NoAnswer(#[source] legacy::Error),
    #[error("the answer breaks off")]
    BrokenAnswer(#[source] hyper::Error),
    #[error("the answer is longer than {0} bytes")]
    TooLarge(usize),
    #[error("answered with {status}")]
    Status {
        status: StatusCode,
        /// What the service asked for.
        retry_after: Option<Duration>,
    },
}

impl Error {
    /// When another try may do better, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Resting(wait) => Some(*wait),
            Self::Status { retry_after, .. } => *retry_after,
            Self::Url(_)
            | Self::Busy
            | Self::Timeout(_)
            | Self::NoAnswer(_)
            | Self::BrokenAnswer(_)
            | Self::TooLarge(_) => None,
        }
    }
}
