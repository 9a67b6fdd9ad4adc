//! What an operator writes for a geocoder: `gazetteer`, or `nominatim=https://…`.

use std::{num::NonZeroU32, str::FromStr};

use url::Url;

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
    /// How many times a second it may be asked.
    pub rate: NonZeroU32,
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
#[error(
    "{0:?} is no geocoder; give gazetteer, or nominatim=URL, photon=URL, addok=URL or pelias=URL, where URL may end with #rate=<times a second>"
)]
pub struct UnknownGeocoder(String);

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nominatim => "nominatim",
            Self::Photon => "photon",
            Self::Addok => "addok",
            Self::Pelias => "pelias",
        }
    }

    /// Nominatim's public server permits one request a second.
    fn usual_rate(self) -> NonZeroU32 {
        match self {
            Self::Nominatim => NonZeroU32::MIN,
            Self::Photon | Self::Addok | Self::Pelias => NonZeroU32::MIN.saturating_add(9),
        }
    }
}

impl FromStr for GeocoderSetting {
    type Err = UnknownGeocoder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Its parameters may be a key.
        let shown = text.split(['?', '#']).next().unwrap_or_default();
        let unknown = || UnknownGeocoder(shown.chars().take(100).collect());
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
        let rate = match base.fragment() {
            None => protocol.usual_rate(),
            Some(options) => options
                .strip_prefix("rate=")
                .and_then(|rate| rate.parse().ok())
                .ok_or_else(unknown)?,
        };
        base.set_fragment(None);
        Ok(Self::Online(OnlineSetting {
            protocol,
            base,
            rate,
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
                rate: NonZeroU32::new(25).unwrap(),
            }))
        );
        assert_eq!("gazetteer".parse(), Ok(GeocoderSetting::Gazetteer));
        let nominatim = "nominatim=http://127.0.0.1:1/".parse();
        let Ok(GeocoderSetting::Online(nominatim)) = nominatim else {
            panic!("{nominatim:?}");
        };
        assert_eq!(nominatim.rate.get(), 1);
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
            "photon=https://photon.example#rat=5",
        ] {
            assert!(wrong.parse::<GeocoderSetting>().is_err(), "{wrong}");
        }
        let error = "google=https://x.example?key=SECRET"
            .parse::<GeocoderSetting>()
            .unwrap_err();
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}
