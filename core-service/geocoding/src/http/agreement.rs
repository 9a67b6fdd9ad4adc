//! Compares the postcode and the town of a query with those of a place that a service returned:
//! services prefer a similar address to none.

use std::{collections::HashSet, ops::Range};

use crate::{
    GeocodeMatch, Mismatch, Precision,
    tokenizer::{self, Country, Word, fold},
};

#[cfg(test)]
mod tests;

/// How a place agrees with a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Yes,
    No(Mismatch),
    /// The place has the postcode of the query. The town has another name, which may be one in
    /// another language, or misspelt.
    UnknownTown {
        postcode: String,
        town: String,
    },
}

/// Compares a query's text with a place. `areas` are the names of the areas that contain the place
/// besides its town: suburbs, districts, regions.
pub(super) fn check(text: &str, place: &GeocodeMatch, number: &str, areas: &[String]) -> Agreement {
    let Some(known) = place.postal_code.as_deref().filter(|code| !code.is_empty()) else {
        return Agreement::Yes;
    };
    // Only Addok sends no country: it mostly serves the French address database.
    let country = Country::of(place.country.as_deref().unwrap_or("FR"));
    let query = Query {
        words: tokenizer::tokenize(text, country),
        country,
    };
    let postcodes = query.postcodes(known, number);
    let has_known = |range: &&Range<usize>| fold(&query.original(range)) == fold(known);
    let Some(range) = postcodes.iter().find(has_known).or(postcodes.first()) else {
        return Agreement::Yes;
    };
    let postcode = query.original(range);
    let town = query.town(range, place);
    let is_same_town = town.as_ref().is_some_and(|town| {
        let locality = place.locality.as_deref();
        query.is_in_areas(town, areas)
            || locality.is_some_and(|locality| tokenizer::is_same_name(town, locality, country))
    });
    // A street or a town may have several postcodes, of which the service returns one.
    let has_several = is_same_town && place.precision >= Precision::Street;
    let is_same_postcode =
        is_same_postcode(&postcode, known) || has_several && is_same_region(&postcode, known);
    match town {
        Some(town) if is_same_postcode && !is_same_town => {
            Agreement::UnknownTown { postcode, town }
        }
        _ if is_same_postcode => Agreement::Yes,
        Some(town) if is_same_town => Agreement::No(Mismatch::Contradiction { postcode, town }),
        town => {
            let town = town.unwrap_or_default();
            let elsewhere = format!("{postcode} {town}");
            Agreement::No(Mismatch::OtherPlace(elsewhere.trim_end().to_owned()))
        }
    }
}

/// Whether a written postcode is a place's, or a less exact one: `75000` for all districts of
/// Paris, another code of the same first half (`SW1A 2AB`).
fn is_same_postcode(written: &str, known: &str) -> bool {
    const DISTRICT_DIGITS: usize = 2;
    if fold(written) == fold(known) {
        return true;
    }
    let has_letters = known.contains(|c: char| c.is_alphabetic());
    if let (true, Some((area, _))) = (has_letters, known.split_once(' ')) {
        return fold(written).starts_with(&fold(area));
    }
    let prefix = known.len().saturating_sub(DISTRICT_DIGITS);
    written.ends_with("000") && known.get(..prefix) == written.get(..prefix)
}

/// Whether two postcodes begin alike.
fn is_same_region(written: &str, known: &str) -> bool {
    const REGION_PREFIX: usize = 2;
    let region = |code: &str| fold(code).chars().take(REGION_PREFIX).collect::<String>();
    region(written) == region(known)
}

/// Letters and digits by their kind: postcodes of a country have few shapes.
fn shape(code: &str) -> String {
    let kind = |c: char| if c.is_ascii_digit() { '9' } else { 'a' };
    fold(code).chars().map(kind).collect()
}

/// The words of a query by the conventions of the place's country.
struct Query {
    words: Vec<Word>,
    country: &'static Country,
}

impl Query {
    fn original(&self, range: &Range<usize>) -> String {
        let words: Vec<_> = self.words[range.clone()]
            .iter()
            .map(|word| word.written.as_str())
            .collect();
        words.join(" ")
    }

    /// The words with the shape of a known postcode, except the house number and numbers inside the
    /// building.
    fn postcodes(&self, known: &str, number: &str) -> Vec<Range<usize>> {
        let length = known.split_whitespace().count().max(1);
        let expected = shape(known);
        let has_shape = |range: &Range<usize>| {
            range.end <= self.words.len() && shape(&self.original(range)) == expected
        };
        let is_indoors = |range: &Range<usize>| {
            range.start.checked_sub(1).is_some_and(|before| {
                let word = &self.words[before];
                word.part == self.words[range.start].part && self.country.is_indoor_word(&word.text)
            })
        };
        let is_number = |range: &Range<usize>| fold(&self.original(range)) == fold(number);
        (0..self.words.len())
            .flat_map(|start| [start..start + length, start..start + 1])
            .filter(|range| has_shape(range) && !is_indoors(range) && !is_number(range))
            .collect()
    }

    /// The words in the place of the town, after or before the postcode.
    fn town(&self, postcode: &Range<usize>, place: &GeocodeMatch) -> Option<String> {
        let part = self.words[postcode.start].part;
        let (before, after) = (0..postcode.start, postcode.end..self.country_start());
        let unknown = HashSet::new();
        let mut known: HashSet<_> = self.keys(&place.formatted).collect();
        for word in self.keys(place.locality.as_deref().unwrap_or_default()) {
            known.remove(&word);
        }
        let is_of_street = |word: &Word| word.has_digit() || known.contains(&word.text);
        let has_street = self.words[before.clone()]
            .iter()
            .any(|word| word.part == part && is_of_street(word));
        let following = self
            .name_in(after.clone(), part, &unknown)
            .or_else(|| self.name_in(after, part + 1, &unknown));
        // A word beside the street may be the street, misspelt, where the postcode comes first.
        let preceding = if has_street && self.country.has_postcode_first() {
            None
        } else {
            let previous = part.checked_sub(1).filter(|_| !has_street);
            self.name_in(before.clone(), part, &known)
                .or_else(|| self.name_in(before, previous?, &known))
        };
        if self.country.has_postcode_first() {
            following.or(preceding)
        } else {
            preceding.or(following)
        }
    }

    fn is_in_areas(&self, name: &str, areas: &[String]) -> bool {
        let areas: HashSet<_> = areas.iter().flat_map(|area| self.keys(area)).collect();
        self.keys(name).all(|word| areas.contains(&word))
    }

    /// The words of a part of the query within a range, up to a direction inside a building.
    /// Abbreviations such as those of states, and known words, are skipped.
    fn name_in(&self, range: Range<usize>, part: usize, known: &HashSet<String>) -> Option<String> {
        let words = self.words.get(range)?.iter();
        let name: Vec<_> = words
            .filter(|word| word.part == part)
            .take_while(|word| !self.country.is_indoor_word(&word.text))
            .filter(|word| !word.has_digit() && word.text.chars().count() > 2)
            .filter(|word| !known.contains(&word.text))
            .map(|word| word.written.as_str())
            .collect();
        (!name.is_empty()).then(|| name.join(" "))
    }

    /// The position of the country and its regions at the end of the query.
    fn country_start(&self) -> usize {
        const MAX_WORDS: usize = 4;
        let mut end = self.words.len();
        while let Some(start) = (end.saturating_sub(MAX_WORDS)..end).find(|start| {
            let words: Vec<_> = self.words[*start..end]
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            let key = words.join(" ");
            self.country.is_country_name(&key) || self.country.is_region(&key)
        }) {
            end = start;
        }
        end
    }

    fn keys(&self, text: &str) -> impl Iterator<Item = String> + use<> {
        tokenizer::tokenize(text, self.country)
            .into_iter()
            .map(|word| word.text)
    }
}
