//! Distance and duration of a route between two points.

mod config;
mod osrm;
mod straight_line;

use std::time::Duration;

use domain::{address::LatLng, delivery::Route};

pub use config::{Fallback, RouterConfig};
pub(crate) use osrm::{Osrm, OsrmError};

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

/// Rounds metres or seconds to an integer, with saturation.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, as documented"
)]
fn whole(quantity: f64) -> u32 {
    quantity.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_rounded_and_saturates() {
        for (quantity, expected) in [(0.4, 0), (0.5, 1), (1e30, u32::MAX), (-1.0, 0)] {
            assert_eq!(whole(quantity), expected, "{quantity}");
        }
    }
}
