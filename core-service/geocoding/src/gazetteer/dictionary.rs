//! The words of an index, with a search for similar spellings.

use std::collections::BTreeMap;

use fst::{Automaton, IntoStreamer, Map, Streamer};

/// Words with their frequencies. A few megabytes for a whole country.
pub(super) struct Dictionary(Map<Vec<u8>>);

/// A word similar to a misspelt one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Similar {
    pub(super) word: String,
    /// The edit distance: bytes inserted, deleted, replaced or transposed. A letter outside ASCII
    /// may count as more than one.
    pub(super) edits: u8,
}

const MAX_SIMILAR_WORDS: usize = 12;

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

    /// Words within one or two edits, by edit distance, then by descending frequency.
    pub(super) fn similar(&self, word: &str) -> Vec<Similar> {
        let Some(automaton) = EditDistanceAutomaton::new(word) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut stream = self.0.search_with_state(&automaton).into_stream();
        while let Some((known, count, row)) = stream.next() {
            if let Ok(known) = std::str::from_utf8(known) {
                found.push((automaton.edits(&row), u64::MAX - count, known.to_owned()));
            }
        }
        found.sort_unstable();
        found.truncate(MAX_SIMILAR_WORDS);
        found
            .into_iter()
            .map(|(edits, _, word)| Similar { word, edits })
            .collect()
    }
}

/// Accepts the words within an edit distance of a word (optimal string alignment, computed row by
/// row). The automaton of the `fst` crate is built completely before use, which takes longer than
/// the search.
struct EditDistanceAutomaton<'a> {
    word: &'a [u8],
    max_edits: u8,
}

/// The longest word for which similar words are searched.
const MAX_WORD_BYTES: usize = 40;

/// The edit distances between the input so far and each prefix of the word.
#[derive(Clone, Copy)]
struct Distances {
    row: [u8; MAX_WORD_BYTES + 1],
    /// The row before the last byte.
    previous_row: [u8; MAX_WORD_BYTES + 1],
    /// The last byte of the input.
    last_byte: u8,
}

impl<'a> EditDistanceAutomaton<'a> {
    /// `None` for a word too short or too long for a similarity search.
    fn new(word: &'a str) -> Option<Self> {
        let max_edits = match word.chars().count() {
            // One edit turns a short word into another correct word.
            ..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        (word.len() <= MAX_WORD_BYTES).then_some(Self {
            word: word.as_bytes(),
            max_edits,
        })
    }

    fn edits(&self, distances: &Distances) -> u8 {
        distances.row[self.word.len()]
    }
}

impl Automaton for &EditDistanceAutomaton<'_> {
    type State = Distances;

    fn start(&self) -> Distances {
        let mut row = [0; MAX_WORD_BYTES + 1];
        for (distance, length) in row.iter_mut().zip(0..) {
            *distance = length;
        }
        Distances {
            row,
            previous_row: [u8::MAX; MAX_WORD_BYTES + 1],
            last_byte: 0,
        }
    }

    fn is_match(&self, distances: &Distances) -> bool {
        self.edits(distances) <= self.max_edits
    }

    fn can_match(&self, distances: &Distances) -> bool {
        distances.row[..=self.word.len()]
            .iter()
            .any(|distance| *distance <= self.max_edits)
    }

    fn accept(&self, distances: &Distances, byte: u8) -> Distances {
        let Distances {
            row: last_row,
            previous_row,
            last_byte,
        } = distances;
        let mut row = [0; MAX_WORD_BYTES + 1];
        row[0] = last_row[0].saturating_add(1);
        for (position, expected) in self.word.iter().enumerate() {
            let replaced = last_row[position].saturating_add(u8::from(*expected != byte));
            let inserted = row[position].saturating_add(1);
            let deleted = last_row[position + 1].saturating_add(1);
            let mut edits = replaced.min(inserted).min(deleted);
            if position > 0 && self.word[position - 1] == byte && expected == last_byte {
                edits = edits.min(previous_row[position - 1].saturating_add(1));
            }
            row[position + 1] = edits;
        }
        Distances {
            row,
            previous_row: *last_row,
            last_byte: byte,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_has_similar_words() {
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
