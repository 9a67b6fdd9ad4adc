//! How far it is from one point to another, and how long a courier takes.

mod straight_line;

use futures_util::future::BoxFuture;

use crate::domain::{address::LatLng, delivery::Route};

pub use straight_line::StraightLine;
pub(crate) use straight_line::great_circle_meters;

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
