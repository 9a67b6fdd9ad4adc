//! How far it is from one point to another, and how long a courier takes.

mod config;
mod fallback;
mod osrm;
mod straight_line;

use std::time::Duration;

use domain::{address::LatLng, delivery::Route};
use futures_util::future::BoxFuture;

pub use config::{Fallback, RouterConfig};
pub use fallback::WithFallback;
pub use osrm::{Osrm, OsrmError};
pub use straight_line::StraightLine;

/// Something that knows ways.
pub trait Router: Send + Sync {
    /// The way a courier takes.
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>>;
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Worth another try later.
    #[error("no router answers")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Both points are fine, but nobody can go from one to the other.
    #[error("there is no way from one point to the other")]
    NoRoute,
}

impl Error {
    /// How long the router is left alone, if it is.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable(source) => source.downcast_ref::<upstream::Error>()?.retry_after(),
            Self::NoRoute => None,
        }
    }
}

/// Whole metres or seconds; what is beyond any on the earth saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, which is what is documented"
)]
fn whole(quantity: f64) -> u32 {
    quantity.round() as u32
}
