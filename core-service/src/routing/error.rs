//! Why there is no route.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Temporary; can be retried.
    #[error("the router is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Both points are valid but not connected.
    #[error("there is no route from the pickup to the dropoff")]
    NoRoute,
}

impl Error {
    /// How long to wait until a retry may succeed, if known: until the circuit breaker lets a
    /// request through, or the router's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable(source) => source.downcast_ref::<upstream::Error>()?.retry_after(),
            Self::NoRoute => None,
        }
    }
}
