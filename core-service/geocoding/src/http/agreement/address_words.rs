//! The words of a query, and which of them are those of a place's street.

use std::{collections::HashSet, ops::Range};

use crate::{
    http::protocol::Place,
    tokenizer::{self, Country, Word, fold},
};

/// The words of a query by the conventions of the place's country.
pub(super) struct AddressWords {
    pub(super) words: Vec<Word>,
    pub(super) country: &'static Country,
    /// The positions of the words of the place's street.
    pub(super) street: HashSet<usize>,
    /// The part with some words of the street, if the query does not have the whole street.
    pub(super) inexact_street: Option<usize>,
}

impl AddressWords {
    pub(super) fn new(text: &str, country: &'static Country, place: &Place) -> Self {
        let words = tokenizer::tokenize(text, country);
        let street: Vec<_> = keys(place.street.as_deref().unwrap_or_default(), country).collect();
        let is_street = |words: &[Word]| words.iter().map(|word| &word.text).eq(&street);
        let whole = words.windows(street.len().max(1)).position(is_street);
        // Otherwise those of its words in the part that has most of them, preferably that of the
        // house number: `Paris` in `12 Rue de Lyon, Paris` is no word of Rue de Paris.
        let in_part = |part| -> HashSet<usize> {
            let position = |key: &String| {
                (0..words.len()).find(|at| words[*at].part == part && words[*at].text == *key)
            };
            street.iter().filter_map(position).collect()
        };
        let number = fold(place.number());
        let has_number = |part| {
            let is_number = |word: &Word| word.part == part && fold(&word.written) == number;
            words.iter().any(is_number)
        };
        let parts = words.last().map_or(0, |last| last.part + 1);
        let most = (0..parts)
            .rev()
            .max_by_key(|part| (in_part(*part).len(), has_number(*part)))
            .filter(|part| !in_part(*part).is_empty());
        let (street, inexact_street) = match whole {
            Some(start) => ((start..start + street.len()).collect(), None),
            None => (most.map(in_part).unwrap_or_default(), most),
        };
        Self {
            words,
            country,
            street,
            inexact_street,
        }
    }

    pub(super) fn has_cedex(&self) -> bool {
        self.words.iter().any(|word| word.text == "cedex")
    }

    pub(super) fn original(&self, range: &Range<usize>) -> String {
        tokenizer::written(&self.words[range.clone()])
    }
}

/// The normalized words of a text.
pub(super) fn keys(text: &str, country: &Country) -> impl Iterator<Item = String> + use<> {
    tokenizer::tokenize(text, country)
        .into_iter()
        .map(|word| word.text)
}
