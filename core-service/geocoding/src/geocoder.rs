//! The interface of all geocoders: what they look up and find, and a chain of several in the configured order.

use std::fmt;

use clap::ValueEnum;
use domain::{address::LatLng, id::StoreId};
use futures_util::future::BoxFuture;

/// Resolves addresses to points.
pub trait Geocoder: Send + Sync {
    /// Looks up an address. An unknown address is a result, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>>;
}

/// An address to look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Free text.
    pub text: String,
    /// ISO 3166-1 alpha-2; limits the search to one country.
    pub country: Option<String>,
    /// Prefers the nearest of several towns with the same street.
    pub near: Option<LatLng>,
    /// The lowest precision that is acceptable.
    pub required: Precision,
    /// The store of the request: stores share the capacity of an external geocoder. The result does not
    /// depend on it.
    pub store_id: Option<StoreId>,
}

impl Query {
    /// A query for a house in any country.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            country: None,
            near: None,
            required: Precision::Interpolated,
            store_id: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A later retry may succeed.
    #[error("no geocoder is available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Tries the next geocoder if one does not find the address or is not available.
pub struct Chain(pub Vec<Box<dyn Geocoder>>);

impl Chain {
    /// Returns the first found address, otherwise the first partial match. An address is reported
    /// as not found only if every geocoder was available.
    pub async fn geocode(&self, query: &Query) -> Result<GeocodeResult, Error> {
        let mut partial: Option<PartialMatch> = None;
        let mut failure = None;
        for geocoder in &self.0 {
            match geocoder.geocode(query).await {
                Ok(GeocodeResult::Found(found)) => return Ok(GeocodeResult::Found(found)),
                Ok(GeocodeResult::Partial(found)) => {
                    partial.get_or_insert(found);
                }
                Ok(GeocodeResult::NotFound) => {}
                Err(error) => {
                    let cause = &error as &(dyn std::error::Error + 'static);
                    tracing::warn!(error = cause, "geocoder unavailable, trying the next one");
                    failure = Some(error);
                }
            }
        }
        match (partial, failure) {
            (Some(partial), _) => Ok(GeocodeResult::Partial(partial)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(GeocodeResult::NotFound),
        }
    }
}

/// How exact a point is, from the most to the least exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Precision {
    /// The point of the house
    House,
    /// Interpolated between neighbouring houses
    Interpolated,
    /// A point of the street
    Street,
    /// A point of the town
    Locality,
}

impl Precision {
    pub fn meets(self, required: Self) -> bool {
        self <= required
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// An address that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct GeocodeMatch {
    /// The whole address in one line.
    pub formatted: String,
    pub postal_code: Option<String>,
    /// The town.
    pub locality: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
    pub lat_lng: LatLng,
    pub precision: Precision,
    /// From 0 to 1; 1 if every word matches the data exactly.
    pub confidence: f64,
    /// Whether the query names no town, and the one nearest to [`Query::near`]
    /// was chosen.
    pub is_in_nearest_town: bool,
    /// How the parts of the query were matched, for people.
    pub reasons: Vec<String>,
}

/// The text of [`GeocodeMatch::is_in_nearest_town`].
pub(crate) const NEAREST_TOWN: &str = "no town is given: the town nearest to the store was chosen";

impl GeocodeMatch {
    /// Why the address may be another than the query means, although it is accepted.
    pub fn ambiguity(&self) -> Option<&'static str> {
        match self.precision {
            Precision::Locality => Some("only the town was found, not the street"),
            Precision::Street => Some("only the street was found, not the house number"),
            Precision::House | Precision::Interpolated => {
                self.is_in_nearest_town.then_some(NEAREST_TOWN)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum GeocodeResult {
    /// One address of the required precision.
    Found(GeocodeMatch),
    /// No single address of the required precision.
    Partial(PartialMatch),
    NotFound,
}

/// The addresses that match a part of a query. The display text explains the mismatch, without a
/// full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialMatch {
    pub mismatch: Mismatch,
    /// One to `MAX_CANDIDATES`, best first. For a missing street, the town.
    pub candidates: Vec<GeocodeMatch>,
}

impl From<PartialMatch> for GeocodeResult {
    fn from(partial: PartialMatch) -> Self {
        Self::Partial(partial)
    }
}

/// Why a query has only a partial match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The street matches; the house number is unknown or absent.
    HouseNumber(Option<String>),
    /// The town matches; the street is unknown or absent.
    Street,
    /// Unknown words that may name another town.
    UnknownWords(String),
    /// The given town or postcode has no such street.
    OtherPlace(String),
    /// The given postcode is not that of the given town: either may be wrong.
    Contradiction { postcode: String, town: String },
    /// Several towns have the address.
    AmbiguousTown,
}

const MAX_CANDIDATES: usize = 3;

impl PartialMatch {
    /// Keeps only the first `MAX_CANDIDATES` candidates.
    pub(crate) fn new(mismatch: Mismatch, mut candidates: Vec<GeocodeMatch>) -> Self {
        candidates.truncate(MAX_CANDIDATES);
        Self {
            mismatch,
            candidates,
        }
    }
}

impl fmt::Display for PartialMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self
            .candidates
            .iter()
            .map(|found| found.formatted.as_str())
            .collect();
        let only = match self.mismatch {
            Mismatch::Street => "only ",
            _ => "",
        };
        write!(f, "found {only}{}", places.join("; "))?;
        let is_estimated = self
            .candidates
            .first()
            .is_some_and(|found| found.precision == Precision::Interpolated);
        match &self.mismatch {
            Mismatch::HouseNumber(_) if is_estimated => {
                write!(f, ", but its position is only estimated")
            }
            Mismatch::HouseNumber(Some(number)) => write!(f, ", but no number {number}"),
            Mismatch::HouseNumber(None) => write!(f, "; the house number is missing"),
            Mismatch::Street => write!(f, ": add or correct the street and house number"),
            Mismatch::UnknownWords(words) => write!(f, ", but did not understand {words:?}"),
            Mismatch::OtherPlace(place) => write!(f, ", but not in {place}"),
            Mismatch::Contradiction { postcode, town } => write!(
                f,
                ", but the postcode {postcode} and the town {town} contradict each other"
            ),
            Mismatch::AmbiguousTown => write!(f, "; the town or its postcode is missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Always returns the same result; fails with `None`.
    struct Fixed(Option<GeocodeResult>);

    impl Geocoder for Fixed {
        fn geocode<'a>(&'a self, _: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
            let down = || Error::Unavailable("down".into());
            std::future::ready(self.0.clone().ok_or_else(down)).boxed()
        }
    }

    fn place(name: &str) -> GeocodeMatch {
        GeocodeMatch {
            formatted: name.to_owned(),
            postal_code: None,
            locality: None,
            country: None,
            lat_lng: LatLng::new(48.0, 2.0).unwrap(),
            precision: Precision::House,
            confidence: 1.0,
            is_in_nearest_town: false,
            reasons: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_first_found_address_is_returned_otherwise_the_first_partial_match() {
        let found = |name| Some(GeocodeResult::Found(place(name)));
        let partial = |name| {
            let mismatch = Mismatch::HouseNumber(None);
            Some(GeocodeResult::Partial(PartialMatch::new(
                mismatch,
                vec![place(name)],
            )))
        };
        let nothing = Some(GeocodeResult::NotFound);
        let down = None;

        for (geocoders, expected) in [
            (vec![found("a"), found("b")], found("a")),
            (vec![nothing.clone(), found("b")], found("b")),
            (vec![partial("a"), found("b")], found("b")),
            (vec![down.clone(), found("b")], found("b")),
            (vec![partial("a"), partial("b")], partial("a")),
            (vec![partial("a"), down.clone()], partial("a")),
            (vec![nothing.clone(), nothing.clone()], nothing.clone()),
            (vec![nothing.clone(), down.clone()], down.clone()),
            (vec![down.clone(), nothing.clone()], down.clone()),
            (vec![down.clone(), down.clone()], down),
        ] {
            let case = format!("{geocoders:?}");
            let chain = geocoders
                .into_iter()
                .map(|result| Box::new(Fixed(result)) as Box<dyn Geocoder>);
            let result = Chain(chain.collect()).geocode(&Query::new("x")).await;
            assert_eq!(result.ok(), expected, "{case}");
        }
    }
}
