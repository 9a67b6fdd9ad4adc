//! An HTTP client for an external service (a geocoder, a router), with a timeout, a concurrency
//! limit and a circuit breaker. Every call ends within its timeout.

mod circuit_breaker;
mod client;
mod error;
mod metrics;
#[cfg(any(test, feature = "test-server"))]
pub mod test_server;
#[cfg(test)]
mod tests;

pub use client::{Client, Limits, Response, parse_timeout};
pub use error::Error;
pub use metrics::{Monitor, register_metrics};
