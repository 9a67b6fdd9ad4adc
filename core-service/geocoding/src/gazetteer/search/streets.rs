//! Searches the full-text index for the streets of a query.

use std::collections::BTreeMap;

use super::{
    AREA_RADIUS_METERS, Scope, Search, match_locality::StreetCandidate, match_street::StreetMatch,
    parsed_query::WordCandidates,
};
use crate::gazetteer::{
    index::{PlaceToken, Street},
    point,
};

#[derive(Default)]
pub(super) struct Streets<'a> {
    pub(super) matching: Vec<StreetCandidate<'a>>,
    /// Streets that match by name but not by place.
    pub(super) elsewhere: Vec<StreetCandidate<'a>>,
}

/// Streets compared per full-text query.
const MAX_STREETS: u32 = 48;

impl Search<'_> {
    /// The streets that match the query by name.
    pub(super) fn streets(
        &self,
        candidates: &WordCandidates,
        scope: Scope,
    ) -> rusqlite::Result<Streets<'_>> {
        let mut streets = Streets::default();
        let mut best = BTreeMap::<i64, (StreetMatch, Street)>::new();
        for expression in self.expressions(candidates, scope) {
            for street in self.lookup.streets(&expression, MAX_STREETS)? {
                let Some(found) = StreetMatch::find(&street.words, &self.parsed, candidates) else {
                    continue;
                };
                let known = best.get(&street.id);
                if known.is_none_or(|(known, _)| {
                    (found.words.len(), found.confidence) > (known.words.len(), known.confidence)
                }) {
                    best.insert(street.id, (found, street));
                }
            }
        }
        // In `rue de la Paix, Lyon`, `Lyon` is not short for `Rue de Lyon`.
        if best.values().any(|(found, _)| found.has_street_type) {
            best.retain(|_, (found, _)| found.has_street_type);
        }
        // `Rue de Paris à Lille` excludes `Rue de Paris`.
        let longest = best
            .values()
            .map(|(found, _)| found.words.clone())
            .max_by_key(ExactSizeIterator::len);
        for (found, street) in best.into_values() {
            let is_part = longest.as_ref().is_some_and(|longest| {
                found.words != *longest
                    && longest.start <= found.words.start
                    && found.words.end <= longest.end
            });
            if is_part {
                continue;
            }
            match StreetCandidate::new(self, street, found)? {
                Some(candidate) if candidate.mismatch.is_none() => streets.matching.push(candidate),
                Some(candidate) => streets.elsewhere.push(candidate),
                None => {}
            }
        }
        Ok(streets)
    }

    /// Full-text expressions for streets with any of the words, ranked by number and rarity of the
    /// words. One expression per part of the query if there are many words.
    fn expressions(&self, candidates: &WordCandidates, scope: Scope) -> Vec<String> {
        const MAX_WORDS: usize = 8;
        let Some(place) = self.place_expression(scope) else {
            return Vec::new();
        };
        let words = &self.parsed.words;
        let has_candidates = |position: &usize| !candidates.0[*position].is_empty();
        let (street_types, names): (Vec<_>, Vec<_>) = (0..words.len())
            .filter(has_candidates)
            .partition(|position| self.parsed.country.is_street_type(&words[*position].text));
        // A street type alone matches every street, so it is searched only in a limited
        // scope and if no other word can be the name.
        let is_type_alone = scope != Scope::Anywhere
            && (0..words.len()).all(|position| {
                street_types.contains(&position)
                    || words[position].starts_with_digit()
                    || self.parsed.is_place(position)
            });
        let names = if is_type_alone { street_types } else { names };
        let parts: Vec<Vec<usize>> = if names.len() <= MAX_WORDS {
            vec![names]
        } else {
            names
                .chunk_by(|a, b| words[*a].part == words[*b].part)
                .map(<[usize]>::to_vec)
                .collect()
        };
        parts
            .iter()
            .filter_map(|part| {
                let mut indexed: Vec<_> = part
                    .iter()
                    .flat_map(|position| candidates.0[*position].keys())
                    .collect();
                indexed.sort_unstable();
                indexed.dedup();
                let words = any_of(&indexed)?;
                Some(match place.as_str() {
                    "" => format!("words : {words}"),
                    place => format!("words : {words} AND {place}"),
                })
            })
            .collect()
    }

    /// The full-text expression for the places of a scope. `None` if it has no place; empty if
    /// streets are not restricted to places.
    fn place_expression(&self, scope: Scope) -> Option<String> {
        let places: Vec<PlaceToken<'_>> = match scope {
            Scope::Anywhere if self.index.countries.len() > 1 => {
                vec![PlaceToken::Country(self.country)]
            }
            Scope::Anywhere => return Some(String::new()),
            Scope::Area => point::cells_within(self.query.near?, AREA_RADIUS_METERS)
                .into_iter()
                .map(PlaceToken::Cell)
                .collect(),
            Scope::GivenPlaces => {
                let localities = self.parsed.towns.iter().flat_map(|town| &town.localities);
                let postcodes = self.parsed.postcodes.iter();
                let known = postcodes.filter(|postcode| !postcode.localities.is_empty());
                localities
                    .map(|locality| PlaceToken::Locality(locality.id))
                    .chain(known.map(|postcode| PlaceToken::Postcode(&postcode.code)))
                    .collect()
            }
        };
        any_of(&places).map(|places| format!("place : {places}"))
    }
}

fn any_of(words: &[impl std::fmt::Display]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| format!("({})", words.join(" OR ")))
}
