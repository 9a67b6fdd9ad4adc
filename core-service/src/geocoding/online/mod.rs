//! Geocoders that are asked over HTTP. What they answer is believed only as far as it can be
//! checked: a point on the earth, the country asked for, the house number that was written.

mod addok;
mod nominatim;
mod pelias;
mod photon;
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
use url::Url;

use super::{
    Answer, Error, Found, Geocoder, Missing, Precision, Query, Unclear,
    setting::{OnlineSetting, Protocol},
    words::folded,
};
use crate::{
    domain::address::LatLng,
    upstream::{self, Client, Limits},
};

/// A geocoder somewhere else.
pub struct Online {
    protocol: Protocol,
    base: Url,
    /// BCP 47.
    language: String,
    client: Client,
    rate: DefaultDirectRateLimiter,
}

/// What a search needs of the service, and what the caller of this waits at most.
const LIMITS: Limits = Limits {
    deadline: Duration::from_secs(5),
    in_flight: 16,
    largest_answer: 256 * 1024,
};
/// A turn that is farther away is not waited for.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);
/// The answers that are looked at.
const MOST_PLACES: usize = 5;
/// Characters of a query; Addok refuses more than 200.
const LONGEST_QUERY: usize = 200;
/// Places that the service itself is less sure of are none.
const LEAST_CONFIDENCE: f64 = 0.4;
/// Texts of an answer that are longer are not kept.
const LONGEST_TEXT: usize = 300;

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
    /// Fails if TLS can't be set up.
    pub fn new(setting: &OnlineSetting, language: &str) -> Result<Self, rustls::Error> {
        Self::with_limits(setting, language, LIMITS)
    }

    fn with_limits(
        setting: &OnlineSetting,
        language: &str,
        limits: Limits,
    ) -> Result<Self, rustls::Error> {
        let rate = Quota::per_second(setting.rate).allow_burst(NonZeroU32::MIN);
        Ok(Self {
            protocol: setting.protocol,
            base: setting.base.clone(),
            language: language.to_owned(),
            client: Client::new(limits)?,
            rate: RateLimiter::direct(rate),
        })
    }

    async fn ask(&self, query: &Query) -> Result<Answer, Failure> {
        self.take_turn().await?;
        let answer = self.client.get(&self.url(query)).await?;
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
        Ok(judge(places, query))
    }

    /// Waits until the service may be asked again.
    async fn take_turn(&self) -> Result<(), Failure> {
        let clock = DefaultClock::default();
        let mut waited = Duration::ZERO;
        while let Err(later) = self.rate.check() {
            let wait = later.wait_time_from(clock.now());
            waited += wait;
            if waited > LONGEST_QUEUE {
                return Err(Failure::Crowded);
            }
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    fn url(&self, query: &Query) -> Url {
        let text: String = query.text.chars().take(LONGEST_QUERY).collect();
        let (path, parameters) = match self.protocol {
            Protocol::Nominatim => nominatim::request(&text, query, &self.language),
            Protocol::Photon => photon::request(&text, query, &self.language),
            Protocol::Addok => addok::request(&text, query),
            Protocol::Pelias => pelias::request(&text, query, &self.language),
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

/// The most exact of the places that can be true, if it is exact enough; of equals the service's
/// first.
fn judge(places: Vec<Place>, query: &Query) -> Answer {
    let mut found: Vec<_> = places
        .into_iter()
        .take(MOST_PLACES)
        .filter_map(|place| checked(place, query))
        .collect();
    found.sort_by_key(|found| found.precision);
    let Some(best) = found.first() else {
        return Answer::NotFound;
    };
    if best.precision.meets(query.demand) {
        return Answer::Found(best.clone());
    }
    let missing = if best.precision <= Precision::Street {
        Missing::HouseNumber(None)
    } else {
        Missing::Street
    };
    if missing == Missing::Street {
        found.truncate(1);
    }
    Answer::Unclear(Unclear::new(missing, found))
}

fn checked(place: Place, query: &Query) -> Option<Found> {
    let country = place
        .country
        .map(|country| country.to_ascii_uppercase())
        .filter(|country| country.len() == 2);
    let is_elsewhere = query
        .country
        .as_ref()
        .zip(country.as_ref())
        .is_some_and(|(asked, country)| !asked.eq_ignore_ascii_case(country));
    let is_short =
        |text: &String| text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control);
    let formatted = Some(place.formatted)
        .filter(|text| !text.trim().is_empty())
        .filter(is_short)?;
    let confidence = if place.confidence.is_finite() {
        place.confidence.clamp(0.0, 1.0)
    } else {
        0.0
    };
    if is_elsewhere || confidence < LEAST_CONFIDENCE {
        return None;
    }
    let mut precision = place.precision?;
    // A house of another number is another house.
    if precision <= Precision::Interpolated
        && !place
            .number
            .as_deref()
            .is_some_and(|number| is_written(number, &query.text))
    {
        precision = Precision::Street;
    }
    Some(Found {
        formatted,
        postal_code: place.postal_code.filter(is_short),
        locality: place.locality.filter(is_short),
        country,
        lat_lng: LatLng::new(place.latitude, place.longitude).ok()?,
        precision,
        confidence,
        reasons: Vec::new(),
    })
}

/// Has the text a word that begins with a house number's digits?
fn is_written(number: &str, text: &str) -> bool {
    let digits = |word: &str| {
        word.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let number = digits(&folded(number));
    !number.is_empty()
        && text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| digits(&folded(word)) == number)
}

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
