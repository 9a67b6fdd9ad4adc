//! Compares the postcode and the town of a query with those of a place that a service returned:
//! services prefer a similar address to none.

use std::ops::Range;

use crate::{
    GeocodeMatch, Mismatch, Precision,
    tokenizer::{self, Country},
};

use super::protocol::Place;
use address_words::{AddressWords, keys};
use postcode::{is_same_postcode, is_same_region};

mod address_words;
mod postcode;
#[cfg(test)]
mod tests;

/// How a place agrees with a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Yes,
    No(Mismatch),
    /// The place has the postcode of the query, or the query has none. The query has no known name
    /// of the place's town. `towns` are the words where a town is named, the most likely first: a
    /// name in another language, misspelt, of another town, or of no town.
    UnknownTown {
        postcode: Option<String>,
        towns: Vec<String>,
    },
}

/// Limit of the names in [`Agreement::UnknownTown`]: each causes a request to the service.
const MAX_TOWNS: usize = 2;

pub(super) fn check(text: &str, found: &GeocodeMatch, place: &Place) -> Agreement {
    // Only Addok sends no country: it mostly serves the French address database.
    let country = Country::of(found.country.as_deref().unwrap_or("FR"));
    let query = AddressWords::new(text, country, place);
    let known = found.postal_code.as_deref().filter(|code| !code.is_empty());
    let postcode = known.and_then(|known| query.postcode(known, place.number()));
    let names = query.names(postcode.as_ref(), found, place);
    let (same_town, towns) = query.towns(postcode.as_ref(), known.unwrap_or_default(), &names);
    let unknown_town = |postcode, towns: Vec<String>| {
        if towns.is_empty() || found.locality.is_none() {
            Agreement::Yes
        } else {
            Agreement::UnknownTown { postcode, towns }
        }
    };
    let (Some(known), Some(range)) = (known, postcode) else {
        return match same_town {
            Some(_) => Agreement::Yes,
            None => unknown_town(None, towns),
        };
    };
    let postcode = query.original(&range);
    // A street or a town may have several postcodes, of which the service returns one. A French
    // CEDEX code is that of a post office in the town.
    let has_several =
        same_town.is_some() && (found.precision >= Precision::Street || query.has_cedex());
    let is_same_postcode =
        is_same_postcode(&postcode, known) || has_several && is_same_region(&postcode, known);
    match same_town {
        Some(_) if is_same_postcode => Agreement::Yes,
        Some(town) => Agreement::No(Mismatch::Contradiction { postcode, town }),
        None if !is_same_postcode => {
            let town = towns.first().map_or("", String::as_str);
            let elsewhere = format!("{postcode} {town}");
            Agreement::No(Mismatch::OtherPlace(elsewhere.trim_end().to_owned()))
        }
        None => unknown_town(Some(postcode), towns),
    }
}

/// Successive words of one part of a query that may be a name. Numbers, the street and units
/// (apartments, floors) are excluded.
struct Name {
    words: Range<usize>,
    part: usize,
    /// Without abbreviations such as those of states.
    text: String,
    kind: NameKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameKind {
    /// The place's town, or an area in it.
    Town,
    /// A larger area that contains the place.
    Region,
    Unknown,
}

impl AddressWords {
    /// The names in the query, without the country and the regions at its end.
    fn names(
        &self,
        postcode: Option<&Range<usize>>,
        found: &GeocodeMatch,
        place: &Place,
    ) -> Vec<Name> {
        let is_postcode = |position| postcode.is_some_and(|range| range.contains(&position));
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut is_indoors = false;
        let regions = tokenizer::regions_at_end(&self.words, self.country, 0);
        let end = regions
            .last()
            .map_or(self.words.len(), |region| region.start);
        for (position, word) in self.words[..end].iter().enumerate() {
            let previous = position
                .checked_sub(1)
                .map(|previous| &self.words[previous]);
            let is_new_part = previous.is_none_or(|previous| previous.part != word.part);
            is_indoors &= !is_new_part && !is_postcode(position) && !self.is_after_unit(position);
            is_indoors |= self.country.is_indoor_word(&word.text);
            if is_indoors
                || word.has_digit()
                || is_postcode(position)
                || self.street.contains(&position)
            {
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == position && !is_new_part => last.end += 1,
                _ => runs.push(position..position + 1),
            }
        }
        let is_adjacent = |range: &Range<usize>| {
            postcode.is_some_and(|code| code.end == range.start || range.end == code.start)
        };
        let locality = found.locality.as_deref().unwrap_or_default();
        let towns = place.areas.iter().map(String::as_str).chain([locality]);
        let towns = self.known_names(towns);
        let regions = self.known_names(place.regions.iter().map(String::as_str));
        let name = |range: Range<usize>| {
            let words = self.words[range.clone()].iter();
            let words: Vec<_> = words.filter(|word| is_significant(&word.text)).collect();
            let written: Vec<_> = words.iter().map(|word| word.written.as_str()).collect();
            let text = written.join(" ");
            let keys: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
            let is_of_place = is_covered(&keys, &[&towns[..], &regions].concat());
            let has_town = towns.iter().any(|town| contains(&keys, town));
            let is_same_name =
                is_adjacent(&range) && tokenizer::is_same_name(&text, locality, self.country);
            let is_part_of = |names: &[Vec<String>]| names.iter().any(|name| contains(name, &keys));
            let kind = if is_same_name || is_of_place && has_town || is_part_of(&towns) {
                NameKind::Town
            } else if is_of_place || is_part_of(&regions) {
                NameKind::Region
            } else {
                NameKind::Unknown
            };
            let part = self.words[range.start].part;
            (!text.is_empty()).then_some(Name {
                words: range,
                part,
                text,
                kind,
            })
        };
        runs.into_iter().filter_map(name).collect()
    }

    /// Whether a whole unit ends before a position: `Apt 4`, `2nd floor`.
    fn is_after_unit(&self, position: usize) -> bool {
        let start = position.checked_sub(2);
        let Some([first, second]) = start.and_then(|start| self.words.get(start..position)) else {
            return false;
        };
        let is_number = second.has_digit() || second.text.len() == 1;
        first.part == self.words[position].part
            && (self.country.is_indoor_word(&first.text) && is_number
                || first.has_digit() && self.country.is_floor_word(&second.text))
    }

    /// The words of each name, which may be one of several in a text: `Ixelles - Elsene`.
    fn known_names<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
        names
            .flat_map(tokenizer::names_in)
            .map(|name| {
                keys(name, self.country)
                    .filter(|key| is_significant(key))
                    .collect()
            })
            .filter(|name: &Vec<_>| !name.is_empty())
            .collect()
    }

    /// The place's town in the query, otherwise the names at the positions of a town: those next to
    /// the postcode, or else those after the street.
    fn towns(
        &self,
        postcode: Option<&Range<usize>>,
        known_postcode: &str,
        names: &[Name],
    ) -> (Option<String>, Vec<String>) {
        // A town's name in the name of another street is not a town, unless it is the only name.
        let is_in_street = |name: &&Name| self.inexact_street == Some(name.part);
        let is_only = names.iter().all(|name| is_in_street(&name));
        let known = names
            .iter()
            .filter(|name| is_only || !is_in_street(name))
            .find(|name| name.kind == NameKind::Town);
        let street_end = self.street.iter().max().map_or(0, |last| last + 1);
        let after_street = || names.iter().filter(|name| name.words.start >= street_end);
        let Some(postcode) = postcode else {
            let elsewhere = || names.iter().filter(|name| !is_in_street(name));
            let towns = if self.inexact_street.is_none() || is_only {
                [after_street().next_back(), after_street().next()]
            } else {
                // `Paris, 12 Rue de Lyon`
                [elsewhere().next_back(), elsewhere().next()]
            };
            // A region may have a town of its name: `Barcelona` for a place in Badalona.
            return choose(known, &towns, &[NameKind::Unknown, NameKind::Region]);
        };
        let part = self.words[postcode.start].part;
        let following = |part| {
            names
                .iter()
                .find(move |name| name.part == part && name.words.start >= postcode.end)
        };
        let has_street = (0..postcode.start).any(|position| {
            let word = &self.words[position];
            word.part == part && (word.has_digit() || self.street.contains(&position))
        });
        // A word next to the street may be a misspelt part of it, in countries where the postcode
        // comes first.
        let preceding = names
            .iter()
            .rfind(|name| name.part == part && name.words.end <= postcode.start)
            .filter(|_| !has_street || !self.country.has_postcode_first());
        let previous = after_street()
            .rfind(|name| name.part + 1 == part)
            .filter(|_| !has_street);
        let town = following(part);
        if self.country.has_postcode_first()
            && let Some(town) = town
            && town.kind != NameKind::Town
        {
            // `1050 Bruxelles` is in Ixelles: a whole postcode and a region agree with a place.
            if town.kind == NameKind::Region && self.is_whole_postcode(postcode, known_postcode) {
                return (Some(town.text.clone()), Vec::new());
            }
            // Only a town follows the postcode: a region's name is that of a town here.
            return (None, vec![town.text.clone()]);
        }
        let towns = [town, preceding, following(part + 1), previous];
        choose(known, &towns, &[NameKind::Unknown])
    }
}

/// The known name, otherwise those of these kinds, without duplicates.
fn choose(
    known: Option<&Name>,
    names: &[Option<&Name>],
    kinds: &[NameKind],
) -> (Option<String>, Vec<String>) {
    if let Some(known) = known {
        return (Some(known.text.clone()), Vec::new());
    }
    let mut towns: Vec<String> = Vec::new();
    for name in names.iter().flatten() {
        if kinds.contains(&name.kind) && !towns.contains(&name.text) {
            towns.push(name.text.clone());
        }
    }
    towns.truncate(MAX_TOWNS);
    (None, towns)
}

/// Whether a word is longer than an abbreviation such as that of a state.
fn is_significant(key: &str) -> bool {
    key.chars().count() > 2
}

fn contains<A: PartialEq<B>, B>(words: &[A], name: &[B]) -> bool {
    words
        .windows(name.len().max(1))
        .any(|window| window == name)
}

/// Whether the words are a sequence of whole names. Parts of several names do not count:
/// `Neuilly-sur-Seine` is not covered by `Neuilly-sur-Marne` and `Seine-Saint-Denis`.
fn is_covered(words: &[&str], names: &[Vec<String>]) -> bool {
    let mut is_end = vec![true];
    for end in 1..=words.len() {
        let is_last = |name: &Vec<String>| {
            end.checked_sub(name.len())
                .is_some_and(|start| is_end[start] && words[start..end] == name[..])
        };
        is_end.push(names.iter().any(is_last));
    }
    is_end[words.len()]
}
