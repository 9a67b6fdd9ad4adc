//! Options of an HTTP geocoder, in the fragment of its URL: `#rate=2&timeout=3s`.

use std::{
    collections::BTreeSet,
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use domain::store::Country;
use url::form_urlencoded;

use super::Protocol;

/// The most requests for one query: its text, and two names in it.
const MAX_REQUESTS: u32 = 3;

/// The options of an HTTP geocoder; their defaults are in [`Options::default_for`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests per second.
    pub rate: NonZeroU32,
    /// Per request, including queueing.
    pub timeout: Duration,
    /// Requests in flight.
    pub concurrency: NonZeroU16,
    /// The countries to search; all if empty.
    pub countries: Vec<Country>,
    /// BCP 47; default the platform's.
    pub language: Option<String>,
    /// Whether to send the point near which to search.
    pub bias: bool,
}

impl Options {
    /// Nominatim's public server permits one request a second.
    fn default_for(protocol: Protocol) -> Self {
        let more_requests = match protocol {
            Protocol::Nominatim => 0,
            Protocol::Photon | Protocol::Addok | Protocol::Pelias => 9,
        };
        Self {
            rate: NonZeroU32::MIN.saturating_add(more_requests),
            timeout: Duration::from_secs(5),
            concurrency: NonZeroU16::MIN.saturating_add(15),
            countries: Vec::new(),
            language: None,
            bias: true,
        }
    }

    /// Parses a URL's fragment: `name=value`, joined by `&`.
    pub(crate) fn parse(protocol: Protocol, fragment: &str) -> Result<Self, String> {
        let mut options = Self::default_for(protocol);
        let mut seen = BTreeSet::new();
        for (name, value) in form_urlencoded::parse(fragment.as_bytes()) {
            if !seen.insert(name.clone()) {
                return Err(format!("the geocoder option {name} is given twice"));
            }
            options.set(&name, &value)?;
        }
        let requesting = Duration::from_secs(1) / options.rate.get() * (MAX_REQUESTS - 1);
        if requesting > options.request_time() {
            return Err(format!(
                "a geocoder gets up to {MAX_REQUESTS} requests for an address: with a rate of {}, give it a timeout of {} ms or more",
                options.rate,
                (requesting * 4).as_millis().div_ceil(3)
            ));
        }
        Ok(options)
    }

    /// How long after its start a query may make requests. The rest of the timeout is for the response.
    pub(crate) fn request_time(&self) -> Duration {
        self.timeout * 3 / 4
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let invalid = |expected: &str| {
            format!("{value:?} is not a valid {name} for a geocoder; give {expected}")
        };
        match name {
            "rate" => {
                self.rate = value
                    .parse()
                    .map_err(|_| invalid("a number of requests per second"))?;
            }
            "timeout" => {
                self.timeout = upstream::parse_timeout(value)
                    .map_err(|_| invalid("a duration such as 2s or 500ms, at most 20s"))?;
            }
            "concurrency" => {
                self.concurrency = value
                    .parse()
                    .map_err(|_| invalid("a number of requests in flight"))?;
            }
            "country" => {
                self.countries = value
                    .split(',')
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(|_| invalid("country codes (ISO 3166-1 alpha-2), such as fr,be"))?;
            }
            "language" => {
                value
                    .parse::<icu_locale_core::Locale>()
                    .map_err(|_| invalid("a language tag (BCP 47), such as fr"))?;
                self.language = Some(value.to_owned());
            }
            "bias" => {
                self.bias = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(invalid("yes or no")),
                };
            }
            _ => {
                let start: String = name.chars().take(30).collect();
                return Err(format!(
                    "{start:?} is not a geocoder option; the options are rate, timeout, concurrency, country, language and bias"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_default_and_can_be_set() {
        let assert_default = |protocol, rate| {
            let options = Options {
                rate: NonZeroU32::new(rate).unwrap(),
                timeout: Duration::from_secs(5),
                concurrency: NonZeroU16::new(16).unwrap(),
                countries: Vec::new(),
                language: None,
                bias: true,
            };
            assert_eq!(Options::parse(protocol, ""), Ok(options));
        };
        assert_default(Protocol::Nominatim, 1);
        for protocol in [Protocol::Photon, Protocol::Addok, Protocol::Pelias] {
            assert_default(protocol, 10);
        }

        let set = "rate=25&timeout=1500ms&concurrency=4&country=fr,BE&language=de-AT&bias=no";
        assert_eq!(
            Options::parse(Protocol::Nominatim, set),
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
    fn a_timeout_has_time_for_all_requests_of_a_query() {
        for valid in [
            "rate=1&timeout=2667ms",
            "rate=2&timeout=1334ms",
            "timeout=267ms",
        ] {
            assert!(Options::parse(Protocol::Photon, valid).is_ok(), "{valid}");
        }
    }

    #[test]
    fn an_invalid_option_is_rejected_with_the_valid_values() {
        for (invalid, expected) in [
            (
                "rate=0",
                "\"0\" is not a valid rate for a geocoder; give a number of requests per second",
            ),
            ("rate=often", "\"often\" is not a valid rate"),
            (
                "timeout=0s",
                "give a duration such as 2s or 500ms, at most 20s",
            ),
            ("timeout=21s", "\"21s\" is not a valid timeout"),
            ("timeout=5", "\"5\" is not a valid timeout"),
            ("concurrency=0", "\"0\" is not a valid concurrency"),
            ("concurrency=65536", "give a number of requests in flight"),
            (
                "country=France",
                "give country codes (ISO 3166-1 alpha-2), such as fr,be",
            ),
            ("country=fr,", "\"fr,\" is not a valid country"),
            ("country=", "\"\" is not a valid country"),
            ("language=?", "\"?\" is not a valid language"),
            (
                "bias=maybe",
                "\"maybe\" is not a valid bias for a geocoder; give yes or no",
            ),
            ("rate=1&rate=2", "the geocoder option rate is given twice"),
            (
                "rat=5",
                "\"rat\" is not a geocoder option; the options are rate, timeout,",
            ),
            ("rate", "\"\" is not a valid rate"),
            (
                "rate=1&timeout=2666ms",
                "a geocoder gets up to 3 requests for an address: with a rate of 1, give it a timeout of 2667 ms or more",
            ),
            ("rate=2&timeout=1s", "a timeout of 1334 ms or more"),
        ] {
            let error = Options::parse(Protocol::Photon, invalid).unwrap_err();
            assert!(error.contains(expected), "{invalid}: {error}");
        }
    }
}
