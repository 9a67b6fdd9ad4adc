//! Geocoding: resolves the text of an address to a point, or reports which part does not match.

mod cache;
pub mod gazetteer;
mod geocoder;
mod http;
mod result;
mod spec;
mod tokenizer;

pub use cache::CachedGeocoder;
pub use gazetteer::Gazetteer;
pub use geocoder::{Chain, Error, Geocoder, Query};
pub use http::HttpGeocoder;
pub use result::{GeocodeMatch, GeocodeResult, Mismatch, PartialMatch, Precision};
pub use spec::{GeocoderSpec, GeocodingConfig, HttpGeocoderSpec, Options, Protocol};
