//! Which geocoders are asked, and what is exact enough.

use clap::Args;

use super::{GeocoderSetting, Precision};

/// How the texts of addresses are understood.
#[derive(Args, Clone, Debug)]
pub struct GeocodingConfig {
    /// Which geocoder to ask, repeatable: the next where one has not found the place.
    /// `gazetteer` (the imported addresses), or `nominatim=URL`, `photon=URL`, `addok=URL`,
    /// `pelias=URL`. Parameters of the URL, such as a key, go into every request, and belong into
    /// the environment, not into a flag. It may end with options, as in `#rate=2&timeout=3s`:
    /// `rate` (times a second; 1 for Nominatim, 10 for the others), `timeout` (of a question; 5s),
    /// `concurrency` (questions at once; 16), `country` (the only ones it is asked about, as in
    /// `fr,be`; any; Photon can be told from version 1 on), `language` (of answers; the
    /// platform's), `bias` (`no`: it is not told where the store delivers).
    #[arg(
        long = "geocoder",
        env = "DELIVERY_GEOCODER",
        value_name = "GEOCODER",
        value_delimiter = ' ',
        hide_env_values = true,
        default_value = "gazetteer"
    )]
    pub geocoders: Vec<GeocoderSetting>,

    /// How exactly the place of an address must be known; what is less exact is refused.
    #[arg(
        long,
        env = "DELIVERY_ADDRESS_PRECISION",
        value_enum,
        default_value_t = Precision::Interpolated
    )]
    pub address_precision: Precision,
}

impl Default for GeocodingConfig {
    fn default() -> Self {
        Self {
            geocoders: vec![GeocoderSetting::Gazetteer],
            address_precision: Precision::Interpolated,
        }
    }
}
