//! Distance and duration of a route between two points.

mod config;
mod error;
mod fallback;
mod osrm;
mod straight_line;

use domain::{address::LatLng, delivery::Route};

pub use config::RouterConfig;
pub(crate) use error::Error;
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
