//! Geocoding: resolves the text of an address to a point, or reports which part does not match.

mod cache;
pub mod gazetteer;
mod geocoder;
mod http;
mod spec;
mod tokenizer;

pub use cache::CachedGeocoder;
pub use gazetteer::Gazetteer;
pub use geocoder::{
    Chain, Error, GeocodeMatch, GeocodeResult, Geocoder, Mismatch, PartialMatch, Precision, Query,
};
pub use http::HttpGeocoder;
pub use spec::{GeocoderSpec, GeocodingConfig, HttpGeocoderSpec, Options, Protocol};
