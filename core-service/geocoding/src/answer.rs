//! What is asked of a geocoder, and what it may answer.

use std::fmt;

use clap::ValueEnum;

use domain::address::LatLng;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Precision {
    /// The house itself
    House,
    /// Where the house must be, from its neighbours
    Interpolated,
    /// Somewhere in the street
    Street,
    /// Somewhere in the town
    Locality,
}

impl Precision {
    pub fn meets(self, demand: Self) -> bool {
        self <= demand
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::House => "house",
            Self::Interpolated => "interpolated",
            Self::Street => "street",
            Self::Locality => "locality",
        })
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
    /// How sure it is that this was meant, from 0 to 1: 1 is every word, as it is written in the
    /// data.
    pub confidence: f64,
    /// How it was understood.
    pub reasons: Vec<Reason>,
}

/// How something in a query was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Words of the query, and what they are.
    Read { words: String, role: Role },
    /// A word is not written so.
    Spelling { written: String, known: String },
    /// The postcode is another.
    Postcode { written: String, known: String },
    /// Words had no meaning here.
    Ignored(String),
    /// The town was not named; who asks is near it.
    Area,
    /// The house is not known; these numbers beside it are.
    Between(String, String),
    /// Another house of that number is known.
    Beside(String),
}

/// What words are in an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    HouseNumber,
    Street,
    Postcode,
    Locality,
    Country,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { words, role } => write!(f, "{role}: {words}"),
            Self::Spelling { written, known } => write!(f, "read {written:?} as {known:?}"),
            Self::Postcode { written, known } => {
                write!(f, "the postcode is {known}, not {written}")
            }
            Self::Ignored(words) => write!(f, "left out {words:?}"),
            Self::Area => f.write_str("no town was named: the one near the store"),
            Self::Between(lower, upper) => write!(f, "between {lower} and {upper}"),
            Self::Beside(house) => write!(f, "beside {house}"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HouseNumber => "house number",
            Self::Street => "street",
            Self::Postcode => "postcode",
            Self::Locality => "town",
            Self::Country => "country",
        })
    }
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
    /// At least one and at most [`MAX_CANDIDATES`], the best first. Where the street is missing,
    /// the town, then streets of a similar name.
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

impl Unclear {
    /// With as many of the candidates as are told.
    pub(crate) fn new(missing: Missing, mut candidates: Vec<Found>) -> Self {
        candidates.truncate(MAX_CANDIDATES);
        Self {
            missing,
            candidates,
        }
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self
            .candidates
            .iter()
            .map(|found| found.formatted.as_str())
            .collect();
        if let (Missing::Street, Some((town, similar))) = (&self.missing, places.split_first()) {
            write!(f, "found {town}, but not the street")?;
            return match similar {
                [] => Ok(()),
                similar => write!(f, "; similar are {}", similar.join("; ")),
            };
        }
        write!(f, "found {}", places.join("; "))?;
        let is_estimated = self
            .candidates
            .first()
            .is_some_and(|found| found.precision == Precision::Interpolated);
        match &self.missing {
            Missing::HouseNumber(_) if is_estimated => {
                write!(f, ", but where that is can only be estimated")
            }
            Missing::HouseNumber(Some(number)) => write!(f, ", but no number {number}"),
            Missing::HouseNumber(None) => write!(f, "; the house number is missing"),
            Missing::Street => write!(f, ", but not the street"),
            Missing::Words(words) => write!(f, ", but did not understand \"{words}\""),
            Missing::Elsewhere(place) => write!(f, ", but not in {place}"),
            Missing::Locality => write!(f, "; the town or its postcode is missing"),
        }
    }
}
