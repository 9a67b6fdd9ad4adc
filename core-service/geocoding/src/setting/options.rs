//! How a geocoder elsewhere is asked: what may follow its URL, as `#rate=2&timeout=3s`.

use std::{
    collections::BTreeSet,
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use domain::store::Country;
use url::form_urlencoded;

use super::Protocol;

/// What is not said is as [`Options::usual`] has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many times a second it may be asked.
    pub rate: NonZeroU32,
    /// For one question, waiting for its turn included.
    pub timeout: Duration,
    /// Questions under way at once.
    pub concurrency: NonZeroU16,
    /// The only ones that it is asked about; any if there is none.
    pub countries: Vec<Country>,
    /// BCP 47; the platform's if none.
    pub language: Option<String>,
    /// Whether it is told near what to look first: where the store delivers.
    pub bias: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    #[error(
        "a geocoder has no option {0:?}; it has rate, timeout, concurrency, country, language and bias"
    )]
    Unknown(String),
    #[error("a geocoder's option {0} is given twice")]
    Twice(String),
    #[error("{value:?} is no {name} of a geocoder; give {right}")]
    Value {
        name: String,
        value: String,
        right: &'static str,
    },
}

impl Options {
    /// Nominatim's public server permits one request a second.
    fn usual(protocol: Protocol) -> Self {
        let rate = match protocol {
            Protocol::Nominatim => NonZeroU32::MIN,
            Protocol::Photon | Protocol::Addok | Protocol::Pelias => {
                NonZeroU32::MIN.saturating_add(9)
            }
        };
        Self {
            rate,
            timeout: Duration::from_secs(5),
            concurrency: NonZeroU16::MIN.saturating_add(15),
            countries: Vec::new(),
            language: None,
            bias: true,
        }
    }

    /// Reads a URL's fragment: `name=value`, joined by `&`.
    pub(crate) fn read(protocol: Protocol, fragment: &str) -> Result<Self, InvalidOption> {
        let mut options = Self::usual(protocol);
        let mut said = BTreeSet::new();
        for (name, value) in form_urlencoded::parse(fragment.as_bytes()) {
            if !said.insert(name.clone()) {
                return Err(InvalidOption::Twice(name.into_owned()));
            }
            options.set(&name, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), InvalidOption> {
        let wrong = |right| InvalidOption::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            right,
        };
        match name {
            "rate" => {
                self.rate = value.parse().map_err(|_| wrong("how often a second"))?;
            }
            "timeout" => {
                self.timeout = upstream::parse_deadline(value)
                    .map_err(|_| wrong("a time such as 2s or 500ms, up to 20s"))?;
            }
            "concurrency" => {
                self.concurrency = value
                    .parse()
                    .map_err(|_| wrong("how many questions at once"))?;
            }
            "country" => {
                self.countries = value
                    .split(',')
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(|_| wrong("codes (ISO 3166-1 alpha-2), such as fr,be"))?;
            }
            "language" => {
                value
                    .parse::<icu_locale_core::Locale>()
                    .map_err(|_| wrong("a tag (BCP 47), such as fr"))?;
                self.language = Some(value.to_owned());
            }
            "bias" => {
                self.bias = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong("yes or no")),
                };
            }
            _ => return Err(InvalidOption::Unknown(name.chars().take(30).collect())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_usual_value_and_can_be_set() {
        let usual = |protocol, rate| {
            let options = Options {
                rate: NonZeroU32::new(rate).unwrap(),
                timeout: Duration::from_secs(5),
                concurrency: NonZeroU16::new(16).unwrap(),
                countries: Vec::new(),
                language: None,
                bias: true,
            };
            assert_eq!(Options::read(protocol, ""), Ok(options));
        };
        usual(Protocol::Nominatim, 1);
        for protocol in [Protocol::Photon, Protocol::Addok, Protocol::Pelias] {
            usual(protocol, 10);
        }

        let set = "rate=25&timeout=1500ms&concurrency=4&country=fr,BE&language=de-AT&bias=no";
        assert_eq!(
            Options::read(Protocol::Nominatim, set),
            Ok(Options {
                rate: NonZeroU32::new(25).unwrap(),
                timeout: Duration::from_millis(1500),
                concurrency: NonZeroU16::new(4).unwrap(),
                countries: vec!["FR".parse().unwrap(), "BE".parse().unwrap()],
                language: Some("de-AT".to_owned()),
                bias: false,
            })
        );
    }

    #[test]
    fn what_is_wrong_says_what_would_be_right() {
        for (wrong, told) in [
            (
                "rate=0",
                "\"0\" is no rate of a geocoder; give how often a second",
            ),
            ("rate=often", "\"often\" is no rate"),
            ("timeout=0s", "give a time such as 2s or 500ms, up to 20s"),
            ("timeout=21s", "\"21s\" is no timeout"),
            ("timeout=5", "\"5\" is no timeout"),
            ("concurrency=0", "\"0\" is no concurrency"),
            ("concurrency=65536", "give how many questions at once"),
            (
                "country=France",
                "give codes (ISO 3166-1 alpha-2), such as fr,be",
            ),
            ("country=fr,", "\"fr,\" is no country"),
            ("country=", "\"\" is no country"),
            ("language=?", "\"?\" is no language"),
            (
                "bias=maybe",
                "\"maybe\" is no bias of a geocoder; give yes or no",
            ),
            ("rate=1&rate=2", "a geocoder's option rate is given twice"),
            (
                "rat=5",
                "a geocoder has no option \"rat\"; it has rate, timeout,",
            ),
            ("rate", "\"\" is no rate"),
        ] {
            let error = Options::read(Protocol::Photon, wrong).unwrap_err();
            assert!(error.to_string().contains(told), "{wrong}: {error}");
        }
    }
}
