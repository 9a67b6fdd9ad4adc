//! Distance and duration of a route between two points.

mod config;
mod fallback;
mod osrm;
mod straight_line;

use std::time::Duration;

use domain::{address::LatLng, delivery::Route};

pub use config::RouterConfig;
pub use fallback::Fallback;
pub(crate) use osrm::Osrm;

/// Computes routes.
pub(crate) struct Router {
    /// `None`: all routes are estimated by the straight line.
    osrm: Option<Osrm>,
    fallback: Fallback,
}

impl Router {
    /// The route of a courier.
    pub(crate) async fn route(&self, from: LatLng, to: LatLng) -> Result<Route, Error> {
        match &self.osrm {
            None => Ok(straight_line::estimate(from, to)),
            Some(osrm) => self.fallback.apply(osrm.route(from, to).await, (from, to)),
        }
    }
}

/// Why there is no route.
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
