//! Finding what a text means among the addresses of an index.

mod judging;
mod naming;
mod numbering;
mod placing;
mod streets;
mod text;
mod town;

use super::index::{Index, Lookup, Street};
use crate::{Answer, Query, words::Country};
use placing::Placed;
use text::{Slips, Text};

/// Streets of that name farther away are not in the area of who asks.
const AREA_METERS: f64 = 30_000.0;

/// Looks an address up in one country.
pub(super) fn search(index: &Index, query: &Query, country: &str) -> rusqlite::Result<Answer> {
    let lookup = index.lookup();
    let search = Search {
        text: Text::read(&query.text, Country::of(country), index, &lookup)?,
        index,
        lookup,
        query,
        country,
    };
    search.run()
}

struct Search<'a> {
    text: Text,
    index: &'a Index,
    lookup: Lookup<'a>,
    query: &'a Query,
    /// ISO 3166-1 alpha-2.
    country: &'a str,
}

/// Where streets are looked for, the likeliest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In the towns and at the postcodes that are named.
    Named,
    /// Near who asks.
    Area,
    Anywhere,
}

/// What was found of a text.
#[derive(Default)]
struct Streets {
    /// Named, and nothing speaks against them.
    meant: Vec<Placed>,
    /// Named, but elsewhere.
    elsewhere: Vec<Placed>,
    /// Of a similar name, with how similar it is.
    similar: Vec<(f64, Street)>,
}

impl Search<'_> {
    fn run(&self) -> rusqlite::Result<Answer> {
        let mut passes = Vec::new();
        let mut elsewhere = Vec::new();
        let mut similar = Vec::new();
        for scope in self.scopes() {
            for (pass, slips) in [Slips::Nowhere, Slips::Unknown, Slips::Anywhere]
                .into_iter()
                .enumerate()
            {
                if passes.len() == pass {
                    passes.push(self.text.meanings(self.index, slips));
                }
                let meanings = &passes[pass];
                // Where the place is known, a similar name elsewhere is no hint.
                let is_idle = scope != Scope::Named && self.is_placed();
                if pass > 0 && (is_idle || !meanings.are_misspelt()) {
                    continue;
                }
                let streets = self.streets(meanings, scope)?;
                if !streets.meant.is_empty() {
                    let everyone: Vec<_> = streets.elsewhere.into_iter().chain(elsewhere).collect();
                    return self.judge(streets.meant, &everyone, scope);
                }
                elsewhere.extend(streets.elsewhere);
                if scope == Scope::Named {
                    similar.extend(streets.similar);
                }
            }
        }
        if !elsewhere.is_empty() {
            return self.tell_elsewhere(elsewhere);
        }
        self.town(similar)
    }

    fn scopes(&self) -> Vec<Scope> {
        let mut scopes = Vec::new();
        if self.is_placed() {
            scopes.push(Scope::Named);
        }
        if self.query.near.is_some() {
            scopes.push(Scope::Area);
        }
        scopes.push(Scope::Anywhere);
        scopes
    }

    /// Is a town named, or a postcode that a town has?
    fn is_placed(&self) -> bool {
        let mut postcodes = self.text.postcodes.iter();
        !self.text.towns.is_empty() || postcodes.any(|postcode| !postcode.localities.is_empty())
    }
}
