//! Searches the addresses of an index for a query.

mod match_locality;
mod parsed_query;
mod scoring;
mod streets;
mod town;

use parsed_query::{ParsedQuery, SpellCheck};

use super::index::{Index, Lookup};
use crate::{GeocodeResult, Query, tokenizer::Country};

/// The radius of the area around [`Query::near`].
const AREA_RADIUS_METERS: f64 = 30_000.0;

struct Search<'a> {
    parsed: ParsedQuery,
    index: &'a Index,
    lookup: Lookup<'a>,
    query: &'a Query,
    /// ISO 3166-1 alpha-2.
    country: &'a str,
}

/// Where to search for streets, the most likely scope first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In the towns and postcodes of the query.
    GivenPlaces,
    /// Near [`Query::near`].
    Area,
    Anywhere,
}

/// Searches for an address in one country.
pub(super) fn search(
    index: &Index,
    query: &Query,
    country: &str,
) -> rusqlite::Result<GeocodeResult> {
    let lookup = index.lookup();
    let search = Search {
        parsed: ParsedQuery::parse(&query.text, Country::of(country), index, &lookup)?,
        index,
        lookup,
        query,
        country,
    };
    search.run()
}

impl Search<'_> {
    fn run(&self) -> rusqlite::Result<GeocodeResult> {
        let mut candidates_by_pass = Vec::new();
        let mut elsewhere = Vec::new();
        for scope in self.scopes() {
            for (pass, spell_check) in [
                SpellCheck::Off,
                SpellCheck::UnknownWords,
                SpellCheck::AllWords,
            ]
            .into_iter()
            .enumerate()
            {
                // Computed in the first scope that needs them, then used for the other scopes too.
                if candidates_by_pass.len() == pass {
                    candidates_by_pass.push(self.parsed.word_candidates(self.index, spell_check));
                }
                let candidates = &candidates_by_pass[pass];
                // If the place is known, similar names elsewhere are irrelevant.
                let is_irrelevant = scope != Scope::GivenPlaces && self.has_place();
                if pass > 0 && (is_irrelevant || !candidates.have_corrections()) {
                    continue;
                }
                let streets = self.streets(candidates, scope)?;
                if !streets.matching.is_empty() {
                    let others: Vec<_> = streets.elsewhere.into_iter().chain(elsewhere).collect();
                    return self.select(streets.matching, &others, scope);
                }
                elsewhere.extend(streets.elsewhere);
            }
        }
        if !elsewhere.is_empty() {
            return self.partial_elsewhere(elsewhere);
        }
        self.town()
    }

    fn scopes(&self) -> Vec<Scope> {
        let mut scopes = Vec::new();
        if self.has_place() {
            scopes.push(Scope::GivenPlaces);
        }
        if self.query.near.is_some() {
            scopes.push(Scope::Area);
        }
        scopes.push(Scope::Anywhere);
        scopes
    }

    /// Whether the query has a town, or a postcode of a town.
    fn has_place(&self) -> bool {
        let mut postcodes = self.parsed.postcodes.iter();
        !self.parsed.towns.is_empty() || postcodes.any(|postcode| !postcode.localities.is_empty())
    }
}
