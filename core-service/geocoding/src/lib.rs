//! From a text to an address on the map, and from what was not good enough to words about it.

mod answer;
mod caching;
mod chain;
mod config;
pub mod gazetteer;
mod online;
mod setting;
mod words;

use futures_util::future::BoxFuture;

pub use answer::{Answer, Found, MAX_CANDIDATES, Missing, Precision, Query, Reason, Role, Unclear};
pub use caching::{Caching, Kept, Key};
pub use chain::Chain;
pub use config::GeocodingConfig;
pub use gazetteer::Gazetteer;
pub use online::Online;
pub use setting::{
    GeocoderSetting, InvalidGeocoder, InvalidOption, OnlineSetting, Options, Protocol,
};

/// Something that knows addresses.
pub trait Geocoder: Send + Sync {
    /// Looks an address up. Not to find it is an answer, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>>;
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Worth another try later.
    #[error("no geocoder answers")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
