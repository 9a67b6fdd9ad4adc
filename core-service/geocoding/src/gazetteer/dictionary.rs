//! The words that an index knows, and which of them a misspelt one may be.

use std::collections::BTreeMap;

use fst::{Automaton, IntoStreamer, Map, Streamer};

/// Words, each with how often it occurs. A few megabytes for a whole country.
pub(super) struct Dictionary(Map<Vec<u8>>);

/// A word that may be meant by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Similar {
    pub(super) word: String,
    /// How many letters are missing, too many, others or swapped.
    pub(super) edits: u8,
}

/// Words that may be meant by one.
const MOST_SIMILAR: usize = 12;

impl Dictionary {
    pub(super) fn encode(words: &BTreeMap<String, u64>) -> Result<Vec<u8>, fst::Error> {
        let mut map = fst::MapBuilder::memory();
        for (word, count) in words {
            map.insert(word, *count)?;
        }
        map.into_inner()
    }

    pub(super) fn decode(bytes: Vec<u8>) -> Result<Self, fst::Error> {
        Map::new(bytes).map(Self)
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.0.contains_key(word)
    }

    /// Words that differ by a slip or two of the keyboard, the nearest first, and of these the
    /// most frequent.
    pub(super) fn similar(&self, word: &str) -> Vec<Similar> {
        let Some(slips) = Slips::of(word) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut stream = self.0.search_with_state(&slips).into_stream();
        while let Some((known, count, row)) = stream.next() {
            if let Ok(known) = std::str::from_utf8(known) {
                found.push((slips.edits(&row), u64::MAX - count, known.to_owned()));
            }
        }
        found.sort_unstable();
        found.truncate(MOST_SIMILAR);
        found
            .into_iter()
            .map(|(edits, _, word)| Similar { word, edits })
            .collect()
    }
}

/// Accepts the words that are a few edits from one: a letter missing, too many, another, or two
/// neighbours swapped (optimal string alignment, row by row). A library's automaton is whole
/// before it is used, which takes longer than the search.
struct Slips<'a> {
    word: &'a [u8],
    most: u8,
}

const LONGEST: usize = 40;

/// The distances of what was read so far to each beginning of the word.
#[derive(Clone, Copy)]
struct Slipped {
    row: [u8; LONGEST + 1],
    before: [u8; LONGEST + 1],
    /// The letter read last.
    letter: u8,
}

impl<'a> Slips<'a> {
    /// None for a word too short or too long to be searched so.
    fn of(word: &'a str) -> Option<Self> {
        let most = match word.chars().count() {
            // In a short word a slip makes another word.
            ..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        (word.len() <= LONGEST).then_some(Self {
            word: word.as_bytes(),
            most,
        })
    }

    fn edits(&self, slipped: &Slipped) -> u8 {
        slipped.row[self.word.len()]
    }
}

impl Automaton for &Slips<'_> {
    type State = Slipped;

    fn start(&self) -> Slipped {
        let mut row = [0; LONGEST + 1];
        for (place, distance) in row.iter_mut().zip(0..) {
            *place = distance;
        }
        Slipped {
            row,
            before: [u8::MAX; LONGEST + 1],
            letter: 0,
        }
    }

    fn is_match(&self, slipped: &Slipped) -> bool {
        self.edits(slipped) <= self.most
    }

    fn can_match(&self, slipped: &Slipped) -> bool {
        slipped.row[..=self.word.len()]
            .iter()
            .any(|distance| *distance <= self.most)
    }

    fn accept(&self, slipped: &Slipped, letter: u8) -> Slipped {
        let Slipped {
            row: last,
            before,
            letter: previous,
        } = slipped;
        let mut row = [0; LONGEST + 1];
        row[0] = last[0].saturating_add(1);
        for (place, expected) in self.word.iter().enumerate() {
            let other = last[place].saturating_add(u8::from(*expected != letter));
            let missing = row[place].saturating_add(1);
            let too_many = last[place + 1].saturating_add(1);
            let mut edits = other.min(missing).min(too_many);
            if place > 0 && self.word[place - 1] == letter && expected == previous {
                edits = edits.min(before[place - 1].saturating_add(1));
            }
            row[place + 1] = edits;
        }
        Slipped {
            row,
            before: *last,
            letter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_seen_through() {
        let words = ["rivoli", "republique", "paix", "tivoli"].map(|word| (word.to_owned(), 1));
        let bytes = Dictionary::encode(&BTreeMap::from(words)).unwrap();
        let dictionary = Dictionary::decode(bytes).unwrap();

        for (written, expected) in [
            ("rivolli", vec![("rivoli", 1)]),
            ("rvoli", vec![("rivoli", 1)]),
            ("rviloi", vec![]),
            ("irvoli", vec![("rivoli", 1)]),
            ("nivoli", vec![("rivoli", 1), ("tivoli", 1)]),
            ("repulbiqe", vec![("republique", 2)]),
            ("piax", vec![("paix", 1)]),
            ("pai", vec![]),
        ] {
            let similar = dictionary.similar(written);
            let seen: Vec<_> = similar
                .iter()
                .map(|similar| (similar.word.as_str(), similar.edits))
                .collect();
            assert_eq!(seen, expected, "{written}");
        }
    }
}
