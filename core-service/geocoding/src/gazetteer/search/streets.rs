//! Searches the full-text index for the streets of a query, and matches their names with its words.

use std::{collections::BTreeMap, ops::Range};

use super::{
    AREA_RADIUS_METERS, Scope, Search,
    match_locality::StreetCandidate,
    parsed_query::{ParsedQuery, WordCandidates},
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

/// A match of a street's name in a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreetMatch {
    pub(super) words: Range<usize>,
    /// Whether the query has the street type, if the name has one.
    has_street_type: bool,
    /// From 0 to 1.
    pub(super) confidence: f64,
    /// Positions of misspelt words, with the correct spelling.
    pub(super) spellings: Vec<(usize, String)>,
}

/// The factor for each edit of a word.
const EDIT: f64 = 0.92;
/// The factor for an added or omitted title, or an initial instead of a name.
const TITLE_OR_INITIAL: f64 = 0.95;
/// The factor for an omitted street type: `Rivoli` instead of `Rue de Rivoli`.
const NO_STREET_TYPE: f64 = 0.85;
/// The maximum of edits in a whole name: with more, it is another street.
const MAX_EDITS: u8 = 3;

impl StreetMatch {
    /// The best position where a query has all words of a street's name in order, without
    /// adjacent words that may belong to the name of another street.
    fn find(name: &str, parsed: &ParsedQuery, candidates: &WordCandidates) -> Option<Self> {
        let name: Vec<_> = name.split(' ').collect();
        (0..parsed.words.len())
            .filter_map(|start| match_at(&name, start, parsed, candidates))
            .filter(|found| is_isolated(&found.words, parsed))
            .max_by(|a, b| a.confidence.total_cmp(&b.confidence))
    }
}

fn match_at(
    name: &[&str],
    start: usize,
    parsed: &ParsedQuery,
    candidates: &WordCandidates,
) -> Option<StreetMatch> {
    let country = parsed.country;
    let mut found = StreetMatch {
        words: start..start,
        has_street_type: true,
        confidence: 1.0,
        spellings: Vec::new(),
    };
    let mut edits = 0;
    let mut has_name = false;
    let mut next = start;
    for (position, word) in name.iter().enumerate() {
        if position > 0
            && let Some(title) = parsed.words.get(next)
            && country.is_title(&title.text)
            && title.text != *word
            && parsed.words.len() > next + 1
        {
            found.confidence *= TITLE_OR_INITIAL;
            next += 1;
        }
        let candidate = candidates.0.get(next).and_then(|words| words.get(*word));
        if let Some(distance) = candidate {
            if *distance > 0 {
                edits += distance;
                found.confidence *= EDIT.powi(i32::from(*distance));
                found.spellings.push((next, (*word).to_owned()));
            }
            has_name |= !country.is_street_type(word) || name.len() == 1;
            next += 1;
        } else if position > 0 && position + 1 < name.len() && is_initial(parsed, next, word) {
            found.confidence *= TITLE_OR_INITIAL;
            next += 1;
        } else if country.is_title(word) && name.len() > 1 {
            found.confidence *= TITLE_OR_INITIAL;
        } else if position == 0 && country.is_street_type(word) && name.len() > 1 {
            found.confidence *= NO_STREET_TYPE;
            found.has_street_type = false;
        } else {
            return None;
        }
    }
    found.words.end = next;
    // A town's name without a street type is not the name of a street.
    let is_town = found.confidence < 1.0 && found.words.clone().all(|word| parsed.is_place(word));
    // If all words are street types, as in `Rue du Quai`, all must match.
    has_name |=
        name.iter().all(|word| country.is_street_type(word)) && found.words.len() == name.len();
    (has_name && !is_town && edits <= MAX_EDITS).then_some(found)
}

fn is_initial(parsed: &ParsedQuery, word: usize, name: &str) -> bool {
    parsed
        .words
        .get(word)
        .is_some_and(|word| word.text.len() == 1 && name.starts_with(&word.text))
}

/// Whether no adjacent word of the same part may belong to the name.
fn is_isolated(street: &Range<usize>, parsed: &ParsedQuery) -> bool {
    let words = &parsed.words;
    let is_separate = |word: usize| {
        let text = &words[word].text;
        words[word].starts_with_digit()
            || parsed.is_place(word)
            || parsed.country.is_indoor_word(text)
            || parsed.country.is_number_prefix(text)
    };
    let before = street
        .start
        .checked_sub(1)
        .filter(|before| words[*before].part == words[street.start].part);
    let ends_number = |word: usize| {
        parsed.country.is_number_suffix(&words[word].text)
            && word > 0
            && words[word - 1].starts_with_digit()
    };
    let after = Some(street.end)
        .filter(|after| *after < words.len() && words[*after].part == words[street.end - 1].part);
    before.is_none_or(|before| is_separate(before) || ends_number(before))
        && after.is_none_or(is_separate)
}
