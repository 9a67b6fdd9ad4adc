//! Does what a text says beside the street fit where the street is?

use std::ops::Range;

use super::{naming::Naming, text::Text};
use crate::{
    Missing, Reason, Role,
    gazetteer::{
        house::{House, Written},
        index::{Locality, Lookup, Street},
        place::code,
    },
};

/// A street that a text names, and what the text says of where.
pub(super) struct Placed {
    pub(super) street: Street,
    pub(super) locality: Locality,
    /// The nearest to the street's name first; the first that exists counts.
    pub(super) houses: Vec<House>,
    /// The postcode that was written, if the street has it.
    pub(super) postcode: Option<String>,
    /// A postcode of another town than the one named.
    pub(super) foreign_postcode: Option<String>,
    /// Was its town named, or its postcode?
    pub(super) is_named: bool,
    /// Why it can't be meant.
    pub(super) against: Option<Missing>,
    pub(super) confidence: f64,
    pub(super) reasons: Vec<Reason>,
}

/// A town's name with a slip in it.
const TOWN_EDIT: f64 = 0.92;
/// Words before the address, such as a company's name.
const BEFORE: f64 = 0.9;
/// Words between the street and the town, such as a hamlet's name.
const BETWEEN: f64 = 0.85;
/// Words beside a right postcode, where a town's name was to be expected.
const NO_TOWN: f64 = 0.75;
/// The postcode of a neighbour.
const OTHER_POSTCODE: f64 = 0.7;
/// How much postcodes of one region have in common, in characters.
const REGION: usize = 2;

impl Placed {
    pub(super) fn new(
        text: &Text,
        lookup: &Lookup<'_>,
        street: Street,
        naming: Naming,
    ) -> rusqlite::Result<Option<Self>> {
        let Some(locality) = lookup.locality(street.locality)? else {
            return Ok(None);
        };
        let numbers = numbers(text, &naming.words);
        let mut reasons: Vec<_> = numbers
            .iter()
            .map(|written| read(text, &written.words, Role::HouseNumber))
            .chain([read(text, &naming.words, Role::Street)])
            .collect();
        reasons.extend(
            naming
                .spellings
                .iter()
                .map(|(word, known)| Reason::Spelling {
                    written: text.words[*word].written.clone(),
                    known: known.clone(),
                }),
        );
        let mut placed = Self {
            houses: numbers
                .iter()
                .map(|written| written.house.clone())
                .collect(),
            postcode: None,
            foreign_postcode: None,
            is_named: false,
            against: None,
            confidence: naming.confidence,
            reasons,
            locality,
            street,
        };
        let taken = Taken {
            street: naming.words,
            numbers,
        };
        placed.place(text, lookup, &taken)?;
        Ok(Some(placed))
    }

    fn place(&mut self, text: &Text, lookup: &Lookup<'_>, taken: &Taken) -> rusqlite::Result<()> {
        let town = text.towns.iter().find(|town| {
            taken.is_free(&town.words)
                && town
                    .localities
                    .iter()
                    .any(|locality| locality.id == self.locality.id)
        });
        let other_town = text.towns.iter().find(|town| {
            taken.is_free(&town.words)
                && town.edits == 0
                && town
                    .localities
                    .iter()
                    .all(|locality| locality.id != self.locality.id)
        });
        if let Some(town) = town {
            self.reasons.push(read(text, &town.words, Role::Locality));
            if town.edits > 0 {
                self.confidence *= TOWN_EDIT.powi(i32::from(town.edits));
                self.reasons.push(Reason::Spelling {
                    written: text.written(town.words.clone()),
                    known: self.locality.name.clone(),
                });
            }
        }
        let wrong_postcode = self.read_postcodes(text, lookup, taken)?;
        self.is_named = town.is_some() || self.postcode.is_some();

        let place = |wrong: Option<&Range<usize>>| {
            let town = other_town.map(|town| text.written(town.words.clone()));
            let place: Vec<_> = wrong
                .map(|run| text.written(run.clone()))
                .into_iter()
                .chain(town)
                .collect();
            Missing::Elsewhere(place.join(" "))
        };
        match (town, &wrong_postcode) {
            (Some(_), Some(wrong)) if self.postcode.is_none() => {
                let written = text.written(wrong.clone());
                if self.is_of_region(lookup, &code(&written))? {
                    // People write 75000, or a neighbour's code, beside the right town.
                    self.confidence *= OTHER_POSTCODE;
                    self.foreign_postcode = Some(code(&written));
                    self.reasons.push(Reason::Postcode {
                        written,
                        known: self.street.postcode.clone(),
                    });
                } else {
                    self.against = Some(Missing::Elsewhere(format!(
                        "{written} {}",
                        self.locality.name
                    )));
                }
            }
            (None, _) if other_town.is_some() => {
                self.against = Some(place(
                    wrong_postcode.as_ref().filter(|_| self.postcode.is_none()),
                ));
            }
            (None, Some(wrong)) if self.postcode.is_none() => {
                self.against = Some(place(Some(wrong)));
            }
            _ => {}
        }
        if self.against.is_none() {
            self.read_rest(text, taken, town.map(|town| &town.words));
        }
        Ok(())
    }

    /// Takes the postcode that the street has; gives one that it has not.
    fn read_postcodes(
        &mut self,
        text: &Text,
        lookup: &Lookup<'_>,
        taken: &Taken,
    ) -> rusqlite::Result<Option<Range<usize>>> {
        let mut wrong = None;
        for postcode in &text.postcodes {
            if !taken.is_free(&postcode.words) {
                continue;
            }
            let is_its = code(&self.street.postcode) == postcode.code
                || (postcode.localities.contains(&self.locality.id)
                    && lookup.has_postcode(self.street.id, &postcode.code)?);
            if is_its {
                self.reasons
                    .push(read(text, &postcode.words, Role::Postcode));
                self.postcode = Some(postcode.code.clone());
            } else {
                wrong = Some(postcode.words.clone());
            }
        }
        Ok(wrong)
    }

    fn is_of_region(&self, lookup: &Lookup<'_>, postcode: &str) -> rusqlite::Result<bool> {
        let codes = lookup.postcodes(self.locality.id)?;
        // A town without postcodes has none that could be wrong.
        Ok(codes.is_empty()
            || codes
                .iter()
                .any(|known| known.get(..REGION) == postcode.get(..REGION)))
    }

    /// What is left: words before the address are somebody's name, those behind a floor or a door
    /// say nothing about the town, those behind the town make another town of it.
    fn read_rest(&mut self, text: &Text, taken: &Taken, town: Option<&Range<usize>>) {
        let (mut before, mut between, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_indoors = false;
        for (position, word) in text.words.iter().enumerate() {
            let is_understood = taken.holds(position)
                || town.is_some_and(|town| town.contains(&position))
                || text
                    .postcodes
                    .iter()
                    .any(|postcode| postcode.words.contains(&position))
                || text.around.iter().any(|run| run.contains(&position));
            is_indoors |= text.country.is_indoors(&word.text) && !taken.holds(position);
            if is_understood
                || is_indoors && position >= taken.street.start
                || word.begins_with_digit()
                || word.text.len() == 1
            {
                continue;
            }
            if text.country.is_indoors(&word.text) {
                continue;
            }
            if position < taken.street.start {
                before.push(word.written.as_str());
            } else if town
                .is_some_and(|town| position >= town.end && town.start >= taken.street.end)
            {
                behind.push(word.written.as_str());
            } else {
                between.push(word.written.as_str());
            }
            if position < taken.street.start {
                is_indoors = false;
            }
        }
        let unknown = if town.is_some() { &behind } else { &between };
        if !unknown.is_empty() && (town.is_some() || self.postcode.is_none()) {
            self.against = Some(Missing::Words(unknown.join(" ").to_lowercase()));
            return;
        }
        let between_confidence = if town.is_some() { BETWEEN } else { NO_TOWN };
        for (words, confidence) in [(before, BEFORE), (between, between_confidence)] {
            if !words.is_empty() {
                self.confidence *= confidence;
                self.reasons.push(Reason::Ignored(words.join(" ")));
            }
        }
    }
}

/// Words that name the street and its house.
struct Taken {
    street: Range<usize>,
    numbers: Vec<Written>,
}

impl Taken {
    fn holds(&self, word: usize) -> bool {
        self.street.contains(&word)
            || self
                .numbers
                .iter()
                .any(|number| number.words.contains(&word))
    }

    fn is_free(&self, run: &Range<usize>) -> bool {
        !run.clone().any(|word| self.holds(word))
    }
}

/// The house numbers beside a street.
fn numbers(text: &Text, street: &Range<usize>) -> Vec<Written> {
    let mut numbers = House::before(&text.words, street.start, text.country);
    if numbers.is_empty() {
        let is_postcode = |written: &Written| {
            text.postcodes.iter().any(|postcode| {
                postcode.words == written.words
                    && !postcode.localities.is_empty()
                    && postcode.code.len() > 3
            })
        };
        let after = House::after(&text.words, street.end, text.country);
        numbers.extend(after.filter(|written| !is_postcode(written)));
    }
    numbers
}

fn read(text: &Text, run: &Range<usize>, role: Role) -> Reason {
    Reason::Read {
        words: text.written(run.clone()),
        role,
    }
}
