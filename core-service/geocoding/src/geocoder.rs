//! The interface of all geocoders.

use domain::{address::LatLng, id::StoreId};
use futures_util::future::BoxFuture;

use crate::{GeocodeResult, Precision};

/// Resolves addresses to points.
pub trait Geocoder: Send + Sync {
    /// Looks up an address. An unknown address is a result, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>>;
}

/// An address to look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Free text.
    pub text: String,
    /// ISO 3166-1 alpha-2; limits the search to one country.
    pub country: Option<String>,
    /// Prefers the nearest of several towns with the same street.
    pub near: Option<LatLng>,
    /// The lowest precision that is acceptable.
    pub required: Precision,
    /// The store that asks: stores share the capacity of an external geocoder. The result does not
    /// depend on it.
    pub store_id: Option<StoreId>,
}

impl Query {
    /// A query for a house in any country.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            country: None,
            near: None,
            required: Precision::Interpolated,
            store_id: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A later retry may succeed.
    #[error("no geocoder is available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
