//! From a text to an address on the map, and from what was not good enough to words about it.

mod gazetteer;
mod words;

use futures_util::future::BoxFuture;

use crate::domain::address::LatLng;

pub use gazetteer::{Gazetteer, GazetteerError};

/// Something that knows addresses.
pub trait Geocoder: Send + Sync {
    /// Looks an address up. Not to find it is an answer, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>>;
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// As people write addresses.
    pub text: String,
    /// ISO 3166-1 alpha-2: addresses elsewhere are not looked for.
    pub country: Option<String>,
    /// Decides between towns that have the same street.
    pub near: Option<LatLng>,
    /// What is good enough.
    pub demand: Precision,
}

impl Query {
    /// Looks for a house, anywhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            country: None,
            near: None,
            demand: Precision::Interpolated,
        }
    }
}

/// How exact a point is; the most exact is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// The house itself.
    House,
    /// Where the house must be, from its neighbours.
    Interpolated,
    /// Somewhere in the street.
    Street,
    /// Somewhere in the town.
    Locality,
}

impl Precision {
    pub fn meets(self, demand: Self) -> bool {
        self <= demand
    }
}

/// A place that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The whole address in one line.
    pub formatted: String,
    pub postal_code: Option<String>,
    /// The town.
    pub locality: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
    pub lat_lng: LatLng,
    pub precision: Precision,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One place, as exact as demanded.
    Found(Found),
    /// Understood in part. Its text says what, for people.
    Unclear(Unclear),
    NotFound,
}

/// What was understood of a query, and what was not. Its text is for people: no full stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Unclear {
    pub missing: Missing,
    /// At least one and at most [`MAX_CANDIDATES`], the best first.
    pub candidates: Vec<Found>,
}

/// What keeps a candidate from being the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The street is known, the house number is not, or was not given.
    HouseNumber(Option<String>),
    /// The town is known, the street is not, or was not given.
    Street,
    /// Words that may name another town.
    Words(String),
    /// The town or postcode that was named has no such street.
    Elsewhere(String),
    /// The town, where several have the address.
    Locality,
}

pub const MAX_CANDIDATES: usize = 3;

impl std::fmt::Display for Unclear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places: Vec<_> = self
            .candidates
            .iter()
            .map(|found| found.formatted.as_str())
            .collect();
        write!(f, "found {}", places.join("; "))?;
        match &self.missing {
            Missing::HouseNumber(Some(number)) => write!(f, ", but no number {number}"),
            Missing::HouseNumber(None) => write!(f, "; the house number is missing"),
            Missing::Street => write!(f, ", but not the street"),
            Missing::Words(words) => write!(f, ", but did not understand \"{words}\""),
            Missing::Elsewhere(place) => write!(f, ", but not in {place}"),
            Missing::Locality => write!(f, "; the town or its postcode is missing"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Worth another try later.
    #[error("no geocoder answers")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
