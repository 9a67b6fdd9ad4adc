//! What an operator writes for a geocoder: `gazetteer`, or `nominatim=https://…`.

mod options;

use std::str::FromStr;

use url::Url;

pub use options::{InvalidOption, Options};

/// A geocoder, as `--geocoder` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeocoderSetting {
    /// The addresses of this core's own file.
    Gazetteer,
    Online(OnlineSetting),
}

/// A geocoder that is asked over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSetting {
    pub protocol: Protocol,
    /// Its parameters (a key, for one) go into every request.
    pub base: Url,
    pub options: Options,
}

/// What a geocoder speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Nominatim,
    Photon,
    /// Addok, and so the French BAN's own service.
    Addok,
    Pelias,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGeocoder {
    #[error(
        "{0:?} is no geocoder; give gazetteer, or nominatim=URL, photon=URL, addok=URL or pelias=URL"
    )]
    Unknown(String),
    #[error(transparent)]
    Option(#[from] InvalidOption),
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nominatim => "nominatim",
            Self::Photon => "photon",
            Self::Addok => "addok",
            Self::Pelias => "pelias",
        }
    }
}

impl FromStr for GeocoderSetting {
    type Err = InvalidGeocoder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Its parameters may be a key.
        let shown = text.split(['?', '#']).next().unwrap_or_default();
        let unknown = || InvalidGeocoder::Unknown(shown.chars().take(100).collect());
        if text == "gazetteer" {
            return Ok(Self::Gazetteer);
        }
        let (name, url) = text.split_once('=').ok_or_else(unknown)?;
        let protocols = [
            Protocol::Nominatim,
            Protocol::Photon,
            Protocol::Addok,
            Protocol::Pelias,
        ];
        let protocol = protocols
            .into_iter()
            .find(|protocol| protocol.name() == name)
            .ok_or_else(unknown)?;
        let mut base: Url = url.parse().map_err(|_| unknown())?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(unknown());
        }
        let options = Options::read(protocol, base.fragment().unwrap_or_default())?;
        base.set_fragment(None);
        Ok(Self::Online(OnlineSetting {
            protocol,
            base,
            options,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geocoder_is_named_with_its_address() {
        let setting = "photon=https://photon.example/api-v2?key=K#rate=25".parse();

        assert_eq!(
            setting,
            Ok(GeocoderSetting::Online(OnlineSetting {
                protocol: Protocol::Photon,
                base: "https://photon.example/api-v2?key=K".parse().unwrap(),
                options: Options::read(Protocol::Photon, "rate=25").unwrap(),
            }))
        );
        assert_eq!("gazetteer".parse(), Ok(GeocoderSetting::Gazetteer));
        let nominatim = "nominatim=http://127.0.0.1:1/".parse();
        let Ok(GeocoderSetting::Online(nominatim)) = nominatim else {
            panic!("{nominatim:?}");
        };
        assert_eq!(
            nominatim.options,
            Options::read(Protocol::Nominatim, "").unwrap()
        );
    }

    #[test]
    fn what_is_none_is_refused_and_no_key_is_shown() {
        for wrong in [
            "",
            "google",
            "photon",
            "photon=",
            "photon=photon.example",
            "photon=ftp://photon.example",
            "photon=https://photon.example#rate=0",
        ] {
            assert!(wrong.parse::<GeocoderSetting>().is_err(), "{wrong}");
        }
        for wrong in [
            "google=https://x.example?key=SECRET",
            "photon=https://x.example#key=SECRET",
            "photon=https://x.example?key=SECRET#rate=often",
        ] {
            let error = wrong.parse::<GeocoderSetting>().unwrap_err();
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
    }
}
