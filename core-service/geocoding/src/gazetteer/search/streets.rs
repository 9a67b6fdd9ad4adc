//! The streets that a text may mean.

use std::collections::BTreeMap;

use super::{
    AREA_METERS, Scope, Search, Streets,
    naming::{Naming, likeness},
    placing::Placed,
    text::Meanings,
};
use crate::gazetteer::{index::Street, place::PlaceToken, point};

/// Streets that are looked at closely.
const MOST_STREETS: u32 = 48;
/// Streets with less of their name in the text are not similar.
const SIMILAR: f64 = 0.5;

impl Search<'_> {
    /// The streets that a text names or nearly names.
    pub(super) fn streets(&self, meanings: &Meanings, scope: Scope) -> rusqlite::Result<Streets> {
        let mut streets = Streets::default();
        let mut best = BTreeMap::<i64, (Naming, Street)>::new();
        for expression in self.expressions(meanings, scope) {
            for street in self.lookup.streets(&expression, MOST_STREETS)? {
                let Some(naming) = Naming::find(&street.words, &self.text, meanings) else {
                    let likeness = likeness(&street.words, &self.text, meanings);
                    if likeness >= SIMILAR {
                        streets.similar.push((likeness, street));
                    }
                    continue;
                };
                let known = best.get(&street.id);
                if known.is_none_or(|(known, _)| {
                    (naming.words.len(), naming.confidence) > (known.words.len(), known.confidence)
                }) {
                    best.insert(street.id, (naming, street));
                }
            }
        }
        // `Lyon` is no short form of `Rue de Lyon` beside `rue de la Paix`.
        if best.values().any(|(naming, _)| naming.has_kind) {
            best.retain(|_, (naming, _)| naming.has_kind);
        }
        // `Rue de Paris` is not meant where `Rue de Paris à Lille` is a street.
        let longest = best
            .values()
            .map(|(naming, _)| naming.words.clone())
            .max_by_key(ExactSizeIterator::len);
        for (naming, street) in best.into_values() {
            let is_part = longest.as_ref().is_some_and(|longest| {
                naming.words != *longest
                    && longest.start <= naming.words.start
                    && naming.words.end <= longest.end
            });
            if is_part {
                continue;
            }
            match Placed::new(&self.text, &self.lookup, street, naming)? {
                Some(placed) if placed.against.is_none() => streets.meant.push(placed),
                Some(placed) => streets.elsewhere.push(placed),
                None => {}
            }
        }
        Ok(streets)
    }

    /// What the full-text index is asked for: streets that have any of the words, those that have
    /// the most and the rarest first. Where there are many words, for each part by itself.
    fn expressions(&self, meanings: &Meanings, scope: Scope) -> Vec<String> {
        const MANY: usize = 8;
        let Some(place) = self.place_expression(scope) else {
            return Vec::new();
        };
        let words = &self.text.words;
        let is_useful = |position: &usize| !meanings.0[*position].is_empty();
        let (kinds, names): (Vec<_>, Vec<_>) = (0..words.len())
            .filter(is_useful)
            .partition(|position| self.text.country.is_kind(&words[*position].text));
        // `Rue` alone is every street: only where nothing else can be its name, in a known place.
        let is_kind_alone = scope != Scope::Anywhere
            && (0..words.len()).all(|position| {
                kinds.contains(&position)
                    || words[position].begins_with_digit()
                    || self.text.is_place(position)
            });
        let names = if is_kind_alone { kinds } else { names };
        let parts: Vec<Vec<usize>> = if names.len() <= MANY {
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
                let mut known: Vec<_> = part
                    .iter()
                    .flat_map(|position| meanings.0[*position].keys())
                    .collect();
                known.sort_unstable();
                known.dedup();
                let words = any_of(known.into_iter().map(String::as_str))?;
                Some(match place.as_str() {
                    "" => format!("words : {words}"),
                    place => format!("words : {words} AND {place}"),
                })
            })
            .collect()
    }

    /// None if there is nothing to be found; empty for everywhere.
    fn place_expression(&self, scope: Scope) -> Option<String> {
        let places: Vec<PlaceToken> = match scope {
            Scope::Anywhere if self.index.countries.len() > 1 => {
                vec![PlaceToken::Country(self.country.to_owned())]
            }
            Scope::Anywhere => return Some(String::new()),
            Scope::Area => point::cells_within(self.query.near?, AREA_METERS)
                .into_iter()
                .map(PlaceToken::Cell)
                .collect(),
            Scope::Named => {
                let towns = self.text.towns.iter().flat_map(|town| &town.localities);
                let postcodes = self
                    .text
                    .postcodes
                    .iter()
                    .filter(|postcode| !postcode.localities.is_empty());
                towns
                    .map(|locality| PlaceToken::Locality(locality.id))
                    .chain(postcodes.map(|postcode| PlaceToken::Postcode(postcode.code.clone())))
                    .collect()
            }
        };
        let places: Vec<_> = places.iter().filter_map(PlaceToken::text).collect();
        any_of(places.iter().map(String::as_str)).map(|places| format!("place : {places}"))
    }
}

fn any_of<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<_> = words.map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| format!("({})", words.join(" OR ")))
}
