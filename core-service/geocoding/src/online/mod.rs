//! Geocoders that are asked over HTTP. What they answer is believed only as far as it can be
//! checked.

mod addok;
mod judging;
mod nominatim;
mod pelias;
mod photon;
mod question;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
};
use http::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use url::Url;

use super::{
    Answer, Error, Geocoder, Precision, Query,
    setting::{OnlineSetting, Protocol},
};
use question::{Manner, Question};
use upstream::{Client, Limits};

/// A geocoder somewhere else.
pub struct Online {
    protocol: Protocol,
    base: Url,
    manner: Manner,
    /// For one question, all told.
    timeout: Duration,
    client: Client,
    rate: DefaultDirectRateLimiter,
}

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 256 * 1024;
/// A turn that is farther away is not waited for.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// Why a geocoder has no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("its turn is too far away")]
    Crowded,
    #[error(transparent)]
    Upstream(#[from] upstream::Error),
    #[error("it refuses with {0}")]
    Refused(StatusCode),
    #[error("its answer cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

/// A place as a service describes it, before it is checked.
#[derive(Default)]
struct Place {
    formatted: String,
    number: Option<String>,
    postal_code: Option<String>,
    locality: Option<String>,
    country: Option<String>,
    latitude: f64,
    longitude: f64,
    /// None for what is less exact than a town, or no place for parcels.
    precision: Option<Precision>,
    /// The service's own, from 0 to 1; 1 if it has none.
    confidence: f64,
}

impl Online {
    /// `language` (BCP 47) is that of answers, unless the setting has one. Fails if TLS can't be
    /// set up.
    pub fn new(setting: &OnlineSetting, language: &str) -> Result<Self, rustls::Error> {
        let options = &setting.options;
        let rate = Quota::per_second(options.rate).allow_burst(NonZeroU32::MIN);
        let countries = options.countries.iter();
        let language = options.language.as_deref().unwrap_or(language);
        Ok(Self {
            protocol: setting.protocol,
            base: setting.base.clone(),
            manner: Manner {
                countries: countries
                    .map(|country| country.as_str().to_owned())
                    .collect(),
                language: language.to_owned(),
                bias: options.bias,
            },
            timeout: options.timeout,
            client: Client::new(Limits {
                deadline: options.timeout,
                in_flight: options.concurrency.get().into(),
                largest_answer: LARGEST_ANSWER,
            })?,
            rate: RateLimiter::direct(rate),
        })
    }

    /// What its answers depend on, apart from the query.
    pub fn label(&self) -> String {
        let Manner {
            countries,
            language,
            bias,
        } = &self.manner;
        format!(
            "{:?} {} {language} {countries:?} {bias}",
            self.protocol, self.base
        )
    }

    async fn ask(&self, query: &Query) -> Result<Answer, Failure> {
        let Some(question) = self.manner.question(query) else {
            return Ok(Answer::NotFound);
        };
        let deadline = Instant::now() + self.timeout;
        self.take_turn().await?;
        let answer = self.client.get_by(&self.url(&question), deadline).await?;
        match answer.status {
            status if status.is_success() => {}
            // This question, it can't read.
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::UNPROCESSABLE_ENTITY => {
                return Ok(Answer::NotFound);
            }
            status => return Err(Failure::Refused(status)),
        }
        let places = match self.protocol {
            Protocol::Nominatim => nominatim::places(&answer.body)?,
            Protocol::Photon => photon::places(&answer.body)?,
            Protocol::Addok => addok::places(&answer.body)?,
            Protocol::Pelias => pelias::places(&answer.body)?,
        };
        Ok(judging::judge(places, query, &question.countries))
    }

    /// Waits until the service may be asked again.
    async fn take_turn(&self) -> Result<(), Failure> {
        let clock = DefaultClock::default();
        // Who gets a turn has time to use it.
        let longest = LONGEST_QUEUE.min(self.timeout / 2);
        let mut waited = Duration::ZERO;
        while let Err(later) = self.rate.check() {
            let wait = later.wait_time_from(clock.now());
            waited += wait;
            if waited > longest {
                return Err(Failure::Crowded);
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    fn url(&self, question: &Question) -> Url {
        let (path, parameters) = match self.protocol {
            Protocol::Nominatim => nominatim::request(question),
            Protocol::Photon => photon::request(question),
            Protocol::Addok => addok::request(question),
            Protocol::Pelias => pelias::request(question),
        };
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }
}

impl Geocoder for Online {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
        async move {
            self.ask(query).await.map_err(|failure| {
                Error::Unavailable(
                    format!(
                        "{} ({}): {}",
                        self.protocol.name(),
                        self.base.host_str().unwrap_or_default(),
                        chain(&failure)
                    )
                    .into(),
                )
            })
        }
        .boxed()
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// Parameters of a request, beside those of the base.
type Parameters = Vec<(&'static str, String)>;

/// `24 Rue de la Paix, 75002 Paris`, of what is known of it.
fn line(house: &[Option<&str>], town: &[Option<&str>]) -> String {
    let join = |parts: &[Option<&str>]| {
        let parts: Vec<_> = parts
            .iter()
            .flatten()
            .copied()
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(" ")
    };
    let parts = [join(house), join(town)];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// A list of which members that can't be read are left out: one odd place does not spoil the
/// others.
fn readable<T: DeserializeOwned>(list: Vec<serde_json::Value>) -> impl Iterator<Item = T> {
    list.into_iter()
        .filter_map(|member| serde_json::from_value(member).ok())
}

/// A `GeoJSON` feature: a point is longitude, latitude (RFC 7946 §3.1.1).
#[derive(serde::Deserialize)]
struct Feature<Properties> {
    properties: Properties,
    geometry: Geometry,
}

#[derive(serde::Deserialize)]
struct Geometry {
    coordinates: [f64; 2],
}

#[derive(serde::Deserialize)]
struct FeatureCollection {
    features: Vec<serde_json::Value>,
}
