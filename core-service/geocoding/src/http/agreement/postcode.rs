//! Finds and compares postcodes.

use std::ops::Range;

use super::address_words::AddressWords;
use crate::tokenizer::fold;

/// Whether a written postcode is a place's, or a less exact one: `75000` for all districts of
/// Paris, another code of the same first half (`SW1A 2AB`).
pub(super) fn is_same_postcode(written: &str, known: &str) -> bool {
    const DISTRICT_DIGITS: usize = 2;
    if fold(written) == fold(known) || leading_digits(known) == Some(fold(written)) {
        return true;
    }
    let has_letters = known.contains(|c: char| c.is_alphabetic());
    if let (true, Some((area, _))) = (has_letters, known.split_once(' ')) {
        let written = fold(written);
        return written.starts_with(&fold(area)) && written.len() == fold(known).len();
    }
    let prefix = known.len().saturating_sub(DISTRICT_DIGITS);
    written.ends_with("000") && known.get(..prefix) == written.get(..prefix)
}

/// Whether two postcodes begin alike.
pub(super) fn is_same_region(written: &str, known: &str) -> bool {
    const REGION_PREFIX: usize = 2;
    let region = |code: &str| fold(code).chars().take(REGION_PREFIX).collect::<String>();
    region(written) == region(known)
}

/// The digits of a postcode of digits and letters: `1012` of the Dutch `1012 AB`.
fn leading_digits(known: &str) -> Option<String> {
    let known = fold(known);
    let digits = known.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_whole && digits.len() < known.len()).then(|| digits.to_owned())
}

/// Letters as `a` and digits as `9`: postcodes of a country have few shapes.
fn shape(code: &str) -> String {
    let kind = |c: char| if c.is_ascii_digit() { '9' } else { 'a' };
    fold(code).chars().map(kind).collect()
}

impl AddressWords {
    /// The postcode of the query: the known one if the query has it, otherwise the fewest and first
    /// words with its shape or another one of the country. Excludes the house number, the street
    /// and numbers inside the building.
    pub(super) fn postcode(&self, known: &str, number: &str) -> Option<Range<usize>> {
        const MAX_WORDS: usize = 3;
        let expected = shape(known);
        let has_shape = |range: &Range<usize>| {
            let shape = shape(&self.original(range));
            let part = self.words[range.start].part;
            self.words[range.end - 1].part == part
                && (shape == expected || self.country.is_lettered_postcode(&shape))
        };
        let is_indoors = |range: &Range<usize>| {
            range.start.checked_sub(1).is_some_and(|before| {
                let word = &self.words[before];
                word.part == self.words[range.start].part && self.country.is_indoor_word(&word.text)
            })
        };
        // If only one word equals the place's house number, it is the house number of the query.
        let number = fold(number);
        let is_number_word = |position: &usize| fold(&self.words[*position].written) == number;
        let mut numbers = (0..self.words.len()).filter(is_number_word);
        let only_number = numbers.next().filter(|_| numbers.next().is_none());
        let is_number = |range: &Range<usize>| {
            fold(&self.original(range)) == number
                || only_number.is_some_and(|only| {
                    range.contains(&only) || (only == range.end && self.is_unit(range, known))
                })
        };
        let is_street =
            |range: &Range<usize>| range.clone().any(|word| self.street.contains(&word));
        let is_other =
            |range: &Range<usize>| is_indoors(range) || is_number(range) || is_street(range);
        let ranges = (1..=MAX_WORDS).flat_map(|length| {
            let starts = 0..(self.words.len() + 1).saturating_sub(length);
            starts.map(move |start| start..start + length)
        });
        let postcodes: Vec<_> = ranges
            .filter(|range| has_shape(range) && !is_other(range))
            .collect();
        let has_known = |range: &&Range<usize>| fold(&self.original(range)) == fold(known);
        let postcode = postcodes.iter().find(has_known).or(postcodes.first());
        postcode.cloned().or_else(|| {
            // Digits without letters may be another number, unless they begin a part.
            let digits = shape(&leading_digits(known)?);
            let is_first =
                |start: usize| start == 0 || self.words[start - 1].part != self.words[start].part;
            (0..self.words.len())
                .map(|start| start..start + 1)
                .find(|range| {
                    is_first(range.start)
                        && shape(&self.original(range)) == digits
                        && !is_other(range)
                })
        })
    }

    /// Whether a number directly before the house number is that of a unit, `1102/1 George Street`,
    /// as in countries where no postcode is written there.
    fn is_unit(&self, range: &Range<usize>, known: &str) -> bool {
        !self.country.has_postcode_first()
            && self.words[range.start].part == self.words[range.end].part
            && fold(&self.original(range)) != fold(known)
    }

    /// Whether a postcode is the known one, and not only its first half: `3811` for `3811 CV`.
    pub(super) fn is_whole_postcode(&self, range: &Range<usize>, known: &str) -> bool {
        let written = fold(&self.original(range));
        written == fold(known)
            && (self.country.is_postcode(&written) || written.contains(char::is_alphabetic))
    }
}
