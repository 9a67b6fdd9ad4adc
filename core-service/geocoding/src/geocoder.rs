//! The interface of all geocoders.

use futures_util::future::BoxFuture;

use crate::{GeocodeResult, Query, gazetteer::SearchError};

/// Resolves addresses to points.
pub trait Geocoder: Send + Sync {
    /// Looks up an address. An unknown address is a result, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>>;
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A later retry may succeed.
    #[error("no geocoder is available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The error of a gazetteer that has no usable index.
    pub fn missing_index(&self) -> Option<&SearchError> {
        let Self::Unavailable(cause) = self;
        cause
            .downcast_ref()
            .filter(|error| matches!(error, SearchError::NoIndex(_)))
    }
}
