//! The result of a geocoder.

use std::fmt;

use clap::ValueEnum;
use domain::address::LatLng;

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
    /// Whether the query names no town, and the one nearest to [`Query::near`](crate::Query::near)
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
