//! The state of one search, shared by its steps.

use super::{match_locality::StreetCandidate, parsed_query::ParsedQuery};
use crate::{
    Query,
    gazetteer::index::{Index, Lookup, Street},
};

/// The radius of the area around [`Query::near`].
pub(super) const AREA_RADIUS_METERS: f64 = 30_000.0;

pub(super) struct Search<'a> {
    pub(super) parsed: ParsedQuery,
    pub(super) index: &'a Index,
    pub(super) lookup: Lookup<'a>,
    pub(super) query: &'a Query,
    /// ISO 3166-1 alpha-2.
    pub(super) country: &'a str,
}

/// Where to search for streets, the most likely scope first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In the towns and postcodes of the query.
    GivenPlaces,
    /// Near [`Query::near`].
    Area,
    Anywhere,
}

/// The streets found for a query.
#[derive(Default)]
pub(super) struct Streets<'a> {
    /// Streets that match the query.
    pub(super) matching: Vec<StreetCandidate<'a>>,
    /// Streets that match by name but not by place.
    pub(super) elsewhere: Vec<StreetCandidate<'a>>,
    /// Streets with similar names, with their similarity.
    pub(super) similar: Vec<(f64, Street)>,
}
