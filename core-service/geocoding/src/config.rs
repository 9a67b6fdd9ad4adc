//! Flags of the geocoders and the required precision.

use clap::Args;

use super::{GeocoderSpec, Precision};

/// How addresses are geocoded.
#[derive(Args, Clone, Debug)]
pub struct GeocodingConfig {
    /// Geocoder, repeatable; if one does not find an address, the next one is tried. `gazetteer`
    /// (the imported addresses), or `nominatim=URL`, `photon=URL`, `addok=URL`, `pelias=URL`; or
    /// `none`, with which addresses need a point. Query parameters of the URL, such as a key, are
    /// sent with every request; set a URL with a key in the environment, not in a flag. The URL
    /// may end with options, as in `#rate=2&timeout=3s`: `rate` (requests per second; default 1
    /// for Nominatim, 10 for the others), `timeout` (per request; default 5s), `concurrency`
    /// (requests in flight; default 16), `country` (countries to search, as in `fr,be`; default
    /// all; Photon needs version 1), `language` (of results; default the platform's), `bias`
    /// (whether to send the point near which to search: `yes` or `no`; default `yes`). Example:
    /// `nominatim=https://geo.internal#rate=20&timeout=3s`.
    #[arg(
        long = "geocoder",
        env = "DELIVERY_GEOCODER",
        value_name = "GEOCODER",
        value_delimiter = ' ',
        hide_env_values = true,
        default_value = "gazetteer"
    )]
    pub geocoders: Vec<GeocoderSpec>,

    /// Required precision of an address; less exact addresses are rejected. Example: `house`.
    #[arg(
        long,
        env = "DELIVERY_ADDRESS_PRECISION",
        value_enum,
        default_value_t = Precision::Interpolated
    )]
    pub address_precision: Precision,
}
