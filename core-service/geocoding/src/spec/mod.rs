//! The flags of geocoders, and the value of `--geocoder`: `gazetteer`, `nominatim=https://…`, or `none`.

mod options;

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};
use url::Url;

pub use options::Options;

use crate::Precision;

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

/// The API of a geocoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Protocol {
    Nominatim,
    Photon,
    /// Also the API of the French address database (BAN).
    Addok,
    Pelias,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A configured geocoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeocoderSpec {
    /// The gazetteer file of this core.
    Gazetteer,
    Http(HttpGeocoderSpec),
    /// No geocoder: addresses need a point.
    None,
}

/// A geocoder with an HTTP API.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpGeocoderSpec {
    pub protocol: Protocol,
    /// Its query parameters, such as a key, are sent with every request.
    pub base_url: Url,
    pub options: Options,
}

impl fmt::Debug for HttpGeocoderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpGeocoderSpec")
            .field("protocol", &self.protocol)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl FromStr for GeocoderSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            // The query parameters may contain a key.
            let without_key = text.split(['?', '#']).next().unwrap_or_default();
            let start: String = without_key.chars().take(100).collect();
            format!(
                "{start:?} is not a geocoder; give gazetteer, nominatim=URL, photon=URL, addok=URL, pelias=URL or none"
            )
        };
        if text == "gazetteer" {
            return Ok(Self::Gazetteer);
        }
        if text == "none" {
            return Ok(Self::None);
        }
        let (name, url) = text.split_once('=').ok_or_else(unknown)?;
        let protocol = Protocol::from_str(name, false).map_err(|_| unknown())?;
        let mut base_url: Url = url.parse().map_err(|_| unknown())?;
        if !matches!(base_url.scheme(), "http" | "https") || base_url.cannot_be_a_base() {
            return Err(unknown());
        }
        let options = Options::parse(protocol, base_url.fragment().unwrap_or_default())?;
        base_url.set_fragment(None);
        Ok(Self::Http(HttpGeocoderSpec {
            protocol,
            base_url,
            options,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_a_protocol_and_a_url() {
        let spec = "photon=https://photon.example/api-v2?key=K#rate=25".parse();

        assert_eq!(
            spec,
            Ok(GeocoderSpec::Http(HttpGeocoderSpec {
                protocol: Protocol::Photon,
                base_url: "https://photon.example/api-v2?key=K".parse().unwrap(),
                options: Options::parse(Protocol::Photon, "rate=25").unwrap(),
            }))
        );
        assert_eq!("gazetteer".parse(), Ok(GeocoderSpec::Gazetteer));
        assert_eq!("none".parse(), Ok(GeocoderSpec::None));
        let nominatim = "nominatim=http://127.0.0.1:1/".parse();
        let Ok(GeocoderSpec::Http(nominatim)) = nominatim else {
            panic!("{nominatim:?}");
        };
        assert_eq!(
            nominatim.options,
            Options::parse(Protocol::Nominatim, "").unwrap()
        );
    }

    #[test]
    fn an_invalid_spec_is_rejected_without_revealing_its_key() {
        for wrong in [
            "",
            "google",
            "photon",
            "photon=",
            "photon=photon.example",
            "photon=ftp://photon.example",
            "photon=https://photon.example#rate=0",
        ] {
            assert!(wrong.parse::<GeocoderSpec>().is_err(), "{wrong}");
        }
        for wrong in [
            "google=https://x.example?key=SECRET",
            "photon=https://x.example#key=SECRET",
            "photon=https://x.example?key=SECRET#rate=often",
        ] {
            let error = wrong.parse::<GeocoderSpec>().unwrap_err();
            assert!(!error.contains("SECRET"), "{error}");
        }
    }
}
