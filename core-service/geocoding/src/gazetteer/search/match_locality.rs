//! Checks whether the rest of a query (town, postcode, other words) matches the place of a street.

use std::ops::Range;

use super::{
    Search,
    parsed_query::{ParsedPostcode, ParsedQuery, ParsedTown},
    streets::StreetMatch,
};
use crate::{
    Mismatch,
    gazetteer::{
        house_number::{HouseNumber, HouseNumberInQuery},
        index::{Locality, Street, normalize_postcode},
    },
    tokenizer::{is_same_name, is_translation},
};

/// A street that matches by name, with the match of its place.
pub(super) struct StreetCandidate<'a> {
    pub(super) street: Street,
    pub(super) locality: Locality,
    /// The words of the query that are the street's name.
    name: Range<usize>,
    /// House numbers of the query, nearest to the street's name first; the first known one is used.
    pub(super) houses: Vec<HouseNumberInQuery>,
    /// The postcode of the query, if the street has it.
    pub(super) postcode: Option<&'a ParsedPostcode>,
    /// A postcode of the query in the street's region, which the street does not have.
    pub(super) other_postcode: Option<String>,
    /// Whether the query has the town or the postcode of the street.
    pub(super) has_given_place: bool,
    /// Why the place of the query does not match the street.
    pub(super) mismatch: Option<Mismatch>,
    pub(super) confidence: f64,
    pub(super) reasons: Vec<String>,
}

// Factors that reduce the confidence.
/// For each edit of a town's name.
const TOWN_EDIT: f64 = 0.92;
/// For unknown words before the address, such as a company's name.
const WORDS_BEFORE: f64 = 0.9;
/// For unknown words between the street and the town, such as a hamlet's name.
const WORDS_BETWEEN: f64 = 0.85;
/// For a postcode of the same region, which the street does not have.
const OTHER_POSTCODE: f64 = 0.7;
/// The length of the common prefix of the postcodes of a region, in characters.
const REGION_PREFIX: usize = 2;

impl<'a> StreetCandidate<'a> {
    pub(super) fn new(
        search: &'a Search<'_>,
        street: Street,
        name: StreetMatch,
    ) -> rusqlite::Result<Option<Self>> {
        let parsed = &search.parsed;
        let Some(locality) = search.lookup.locality(street.locality)? else {
            return Ok(None);
        };
        let houses = houses(parsed, &name.words);
        let mut reasons: Vec<_> = houses
            .iter()
            .map(|house| recognized(parsed, "house number", &house.words))
            .chain([recognized(parsed, "street", &name.words)])
            .collect();
        let spellings = name.spellings.iter();
        reasons
            .extend(spellings.map(|(word, known)| corrected(&parsed.words[*word].written, known)));
        let mut candidate = Self {
            name: name.words,
            houses,
            postcode: None,
            other_postcode: None,
            has_given_place: false,
            mismatch: None,
            confidence: name.confidence,
            reasons,
            locality,
            street,
        };
        candidate.match_place(search)?;
        Ok(Some(candidate))
    }

    fn match_place(&mut self, search: &'a Search<'_>) -> rusqlite::Result<()> {
        let parsed = &search.parsed;
        // The index may have a town twice, under its names in two languages.
        let is_same_town = |town: &ParsedTown| {
            let mut localities = town.localities.iter();
            localities.any(|locality| locality.id == self.locality.id)
                || is_translation(
                    &parsed.original(&town.words),
                    &self.locality.name,
                    parsed.country,
                )
        };
        let (same, other): (Vec<_>, Vec<_>) = parsed
            .towns
            .iter()
            .filter(|town| self.uses_none(&town.words))
            .partition(|town| is_same_town(town));
        let town = same.first().map(|town| &town.words);
        let other_town = other.iter().find(|town| town.edits == 0);
        if let Some(town) = same.first() {
            self.reasons.push(recognized(parsed, "town", &town.words));
            if town.edits > 0 {
                self.confidence *= TOWN_EDIT.powi(i32::from(town.edits));
                let written = parsed.original(&town.words);
                self.reasons.push(corrected(&written, &self.locality.name));
            }
        }
        let wrong_postcode = self.match_postcodes(search)?;
        self.has_given_place = town.is_some() || self.postcode.is_some();

        let contradiction = |postcode: &ParsedPostcode, town: &Range<usize>| {
            let postcode = parsed.original(&postcode.words);
            let town = parsed.original(town);
            Mismatch::Contradiction { postcode, town }
        };
        match (town, wrong_postcode, self.postcode) {
            (Some(town), Some(wrong), None) => {
                let written = parsed.original(&wrong.words);
                let is_of_other_town =
                    !wrong.localities.is_empty() && !wrong.localities.contains(&self.locality.id);
                if !is_of_other_town && self.is_in_region(search, &wrong.code)? {
                    // Common errors: 75000, or the code of another district.
                    self.confidence *= OTHER_POSTCODE;
                    self.other_postcode = Some(wrong.code.clone());
                    let known = &self.street.postcode;
                    self.reasons
                        .push(format!("the postcode is {known}, not {written}"));
                } else {
                    self.mismatch = Some(contradiction(wrong, town));
                }
            }
            (None, _, Some(postcode)) if let Some(other_town) = other_town => {
                self.mismatch = Some(contradiction(postcode, &other_town.words));
            }
            (None, wrong, None) if wrong.is_some() || other_town.is_some() => {
                let postcode = wrong.map(|postcode| &postcode.words);
                let town = other_town.map(|town| &town.words);
                let given = postcode.into_iter().chain(town);
                let place: Vec<_> = given.map(|words| parsed.original(words)).collect();
                self.mismatch = Some(Mismatch::OtherPlace(place.join(" ")));
            }
            _ => {}
        }
        if self.mismatch.is_none() {
            let short_name = match town {
                Some(_) => None,
                None => self.short_name(parsed),
            };
            if let Some(name) = &short_name {
                self.reasons.push(recognized(parsed, "town", name));
            }
            // An address's own fields repeat what its text has: `75002 Paris, France, Paris`.
            let repeated: Vec<_> = same.iter().skip(1).map(|town| &town.words).collect();
            self.match_rest(parsed, town.or(short_name.as_ref()), &repeated);
        }
        Ok(())
    }

    /// Records a postcode of the query that the street has; returns one that it does not have.
    fn match_postcodes(
        &mut self,
        search: &'a Search<'_>,
    ) -> rusqlite::Result<Option<&'a ParsedPostcode>> {
        let parsed = &search.parsed;
        let mut wrong = None;
        for postcode in &parsed.postcodes {
            if !self.uses_none(&postcode.words) {
                continue;
            }
            if normalize_postcode(&self.street.postcode) == postcode.code
                || (postcode.localities.contains(&self.locality.id)
                    && search
                        .lookup
                        .has_house_with_postcode(self.street.id, &postcode.code)?)
            {
                self.reasons
                    .push(recognized(parsed, "postcode", &postcode.words));
                self.postcode = Some(postcode);
            } else {
                wrong = Some(postcode);
            }
        }
        Ok(wrong)
    }

    /// The words next to the postcode that are a part of the town's name: `92100 Boulogne` is
    /// Boulogne-Billancourt.
    fn short_name(&self, parsed: &ParsedQuery) -> Option<Range<usize>> {
        let postcode = &self.postcode?.words;
        let names = [parsed.name_after(postcode), parsed.name_before(postcode)];
        names.into_iter().find(|name| {
            !name.is_empty()
                && self.uses_none(name)
                && is_same_name(&parsed.original(name), &self.locality.name, parsed.country)
        })
    }

    fn is_in_region(&self, search: &Search<'_>, postcode: &str) -> rusqlite::Result<bool> {
        let codes = search.lookup.postcodes(self.locality.id)?;
        // A town without postcodes in the index accepts any.
        Ok(codes.is_empty()
            || codes
                .iter()
                .any(|known| known.get(..REGION_PREFIX) == postcode.get(..REGION_PREFIX)))
    }

    /// Whether a word of the query is one of the street or of its house number.
    fn uses(&self, word: usize) -> bool {
        self.name.contains(&word) || self.houses.iter().any(|house| house.words.contains(&word))
    }

    fn uses_none(&self, words: &Range<usize>) -> bool {
        !words.clone().any(|word| self.uses(word))
    }

    /// Classifies the remaining words. Words before the street, such as a name, only reduce the
    /// confidence. From the street on, words after a floor or door are ignored, up to the
    /// postcode. Words after the town, or in its place, mean that it is another town.
    fn match_rest(
        &mut self,
        parsed: &ParsedQuery,
        town: Option<&Range<usize>>,
        repeated: &[&Range<usize>],
    ) {
        let (mut before, mut between, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_indoors = false;
        for (position, word) in parsed.words.iter().enumerate() {
            let is_used = self.uses(position);
            let is_indoor_word = parsed.country.is_indoor_word(&word.text);
            let is_before = position < self.name.start;
            let is_own = |postcode: &ParsedPostcode| {
                let own = self.postcode.map(|own| &own.code);
                postcode.words.contains(&position) && own == Some(&postcode.code)
            };
            is_indoors &= !parsed.postcodes.iter().any(is_own);
            is_indoors |= is_indoor_word && !is_used;
            if is_used
                || town.is_some_and(|town| town.contains(&position))
                || repeated.iter().any(|town| town.contains(&position))
                || !repeated.is_empty() && parsed.country.is_country_name(&word.text)
                || parsed.is_postcode_or_region(position)
                || is_indoors && !is_before
                || is_indoor_word
                || word.starts_with_digit()
                || word.text.len() == 1
            {
                continue;
            }
            if is_before {
                before.push(word.written.as_str());
                // Ends a floor or door before the street, so that words after the street are checked.
                is_indoors = false;
            } else if town.is_some_and(|town| position >= town.end && town.start >= self.name.end) {
                after.push(word.written.as_str());
            } else {
                between.push(word.written.as_str());
            }
        }
        let unknown = if town.is_some() { &after } else { &between };
        if !unknown.is_empty() {
            let unknown = unknown.join(" ");
            self.mismatch = Some(match self.postcode {
                Some(postcode) if town.is_none() => Mismatch::Contradiction {
                    postcode: parsed.original(&postcode.words),
                    town: unknown,
                },
                _ => Mismatch::UnknownWords(unknown.to_lowercase()),
            });
            return;
        }
        for (words, factor) in [(before, WORDS_BEFORE), (between, WORDS_BETWEEN)] {
            if !words.is_empty() {
                self.confidence *= factor;
                self.reasons.push(format!("ignored {:?}", words.join(" ")));
            }
        }
    }
}

fn houses(parsed: &ParsedQuery, street: &Range<usize>) -> Vec<HouseNumberInQuery> {
    let mut houses = HouseNumber::before(&parsed.words, street.start, parsed.country);
    if houses.is_empty() {
        // A shorter number is rather a house number, although some countries have such postcodes.
        let is_postcode = |house: &HouseNumberInQuery| {
            parsed.postcodes.iter().any(|postcode| {
                postcode.words == house.words
                    && !postcode.localities.is_empty()
                    && postcode.code.len() > 3
            })
        };
        let after = HouseNumber::after(&parsed.words, street.end, parsed.country);
        houses.extend(after.filter(|house| !is_postcode(house)));
    }
    houses
}

/// The reason that words of the query have a role in the address.
pub(super) fn recognized(parsed: &ParsedQuery, role: &str, range: &Range<usize>) -> String {
    format!("{role}: {}", parsed.original(range))
}

fn corrected(written: &str, known: &str) -> String {
    format!("corrected {written:?} to {known:?}")
}
