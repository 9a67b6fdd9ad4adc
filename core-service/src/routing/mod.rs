//! Distance and duration of a route between two points.

mod config;
mod fallback;
mod osrm;
mod straight_line;

use std::time::Duration;

use domain::{address::LatLng, delivery::Route};
use futures_util::future::BoxFuture;

pub use config::{Fallback, RouterConfig};
use fallback::WithFallback;
pub(crate) use osrm::{Osrm, OsrmError};
use straight_line::StraightLine;

/// Computes routes.
pub(crate) trait Router: Send + Sync {
    /// The route of a courier.
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>>;
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
