//! Parses a query into words, towns, postcodes and regions.

use std::{cmp::Reverse, collections::HashMap, ops::Range};

use crate::{
    gazetteer::index::{Index, Locality, Lookup, normalize_postcode},
    tokenizer::{self, Country, Word},
};

/// A query, parsed by the conventions of a country.
pub(super) struct ParsedQuery {
    pub(super) country: &'static Country,
    pub(super) words: Vec<Word>,
    /// Word ranges that are names of towns.
    pub(super) towns: Vec<ParsedTown>,
    /// Word ranges that are, or look like, postcodes.
    pub(super) postcodes: Vec<ParsedPostcode>,
    /// Word ranges at the end that are the country or one of its regions.
    pub(super) regions: Vec<Range<usize>>,
}

pub(super) struct ParsedTown {
    pub(super) words: Range<usize>,
    /// The localities of that name; several may share it.
    pub(super) localities: Vec<Locality>,
    /// The edit distance to the correct name.
    pub(super) edits: u8,
}

pub(super) struct ParsedPostcode {
    pub(super) words: Range<usize>,
    pub(super) code: String,
    /// The ids of the localities with this postcode; empty if no address has it.
    pub(super) localities: Vec<i64>,
}

const MAX_TOWN_WORDS: usize = 6;

impl ParsedQuery {
    pub(super) fn parse(
        text: &str,
        country: &'static Country,
        index: &Index,
        lookup: &Lookup<'_>,
    ) -> rusqlite::Result<Self> {
        let words = tokenizer::tokenize(text, country);
        let mut query = Self {
            country,
            regions: tokenizer::regions_at_end(&words, country, 1),
            words,
            towns: Vec::new(),
            postcodes: Vec::new(),
        };
        query.find_postcodes(lookup)?;
        query.find_towns(index, lookup)?;
        Ok(query)
    }

    /// The words of a range in their original form.
    pub(super) fn original(&self, range: &Range<usize>) -> String {
        tokenizer::written(&self.words[range.clone()])
    }

    /// The normalized words of a range, as the index spells names.
    fn key(&self, range: &Range<usize>) -> String {
        tokenizer::key_of(&self.words[range.clone()])
    }

    /// Whether a word belongs to a town, a postcode, a region or the country.
    pub(super) fn is_place(&self, word: usize) -> bool {
        self.towns.iter().any(|town| town.words.contains(&word)) || self.is_postcode_or_region(word)
    }

    pub(super) fn is_postcode_or_region(&self, word: usize) -> bool {
        let postcodes = self.postcodes.iter().map(|postcode| &postcode.words);
        let mut ranges = postcodes.chain(&self.regions);
        ranges.any(|range| range.contains(&word))
    }

    /// The words directly after a range, in its part of the query, that are no place, no number and
    /// no indoor word, such as `floor`.
    pub(super) fn unknown_words_after(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let part = self.words[range.start].part;
        let words = range.end..self.words.len();
        let is_unknown = |word: &usize| !self.is_place(*word) && self.may_be_name(*word, part);
        let count = words.take_while(is_unknown).count();
        (count > 0).then(|| range.end..range.end + count)
    }

    /// The words directly after a range, up to the end of their part of the query, that may be the
    /// name of a town.
    pub(super) fn name_after(&self, range: &Range<usize>) -> Range<usize> {
        let part = self.words.get(range.end).map_or(0, |word| word.part);
        let words = range.end..self.words.len();
        let count = words.take_while(|word| self.may_be_name(*word, part));
        range.end..range.end + count.count()
    }

    /// The words directly before a range, from the start of their part of the query, that may be
    /// the name of a town.
    pub(super) fn name_before(&self, range: &Range<usize>) -> Range<usize> {
        let last = range.start.saturating_sub(1);
        let part = self.words[last].part;
        let words = (0..range.start).rev();
        let count = words.take_while(|word| self.may_be_name(*word, part));
        range.start - count.count()..range.start
    }

    /// Whether a word is in a part of the query, and is no number, no region and no indoor word, such
    /// as `floor`.
    fn may_be_name(&self, position: usize, part: usize) -> bool {
        let word = &self.words[position];
        word.part == part
            && !word.has_digit()
            && !self.country.is_indoor_word(&word.text)
            && !self.regions.iter().any(|range| range.contains(&position))
    }

    fn find_postcodes(&mut self, lookup: &Lookup<'_>) -> rusqlite::Result<()> {
        let mut start = 0;
        while start < self.words.len() {
            let mut length = 1;
            // Postcodes of two words: `SW1A 2AA`, `1017 AB`, `110 00`.
            for words in [2, 1] {
                let range = start..start + words;
                if range.end > self.words.len()
                    || !self.words[range.clone()].iter().any(Word::has_digit)
                {
                    continue;
                }
                let code = normalize_postcode(&self.key(&range));
                let localities = lookup.localities_with_postcode(&code)?;
                let is_in_one_part = self.words[start].part == self.words[start + words - 1].part;
                if !localities.is_empty()
                    || (words == 1 && self.country.is_postcode(&code))
                    || (is_in_one_part && self.country.is_dutch_postcode(&code))
                {
                    self.postcodes.push(ParsedPostcode {
                        words: range,
                        code,
                        localities,
                    });
                    length = words;
                    break;
                }
            }
            start += length;
        }
        Ok(())
    }

    fn find_towns(&mut self, index: &Index, lookup: &Lookup<'_>) -> rusqlite::Result<()> {
        let mut start = 0;
        while start < self.words.len() {
            let range = self
                .ranges_from(start, MAX_TOWN_WORDS)
                .rev()
                .find(|range| index.localities.contains(&self.key(range)));
            match range {
                Some(range) if !self.is_place(start) => {
                    start = range.end;
                    let localities = lookup.localities(&self.key(&range))?;
                    self.towns.push(ParsedTown {
                        words: range,
                        localities,
                        edits: 0,
                    });
                }
                _ => start += 1,
            }
        }
        self.find_misspelt_towns(index, lookup)
    }

    /// Finds towns with a misspelt word in their names.
    fn find_misspelt_towns(&mut self, index: &Index, lookup: &Lookup<'_>) -> rusqlite::Result<()> {
        for unknown in 0..self.words.len() {
            if self.is_place(unknown) || self.is_known(unknown, index) {
                continue;
            }
            let first = unknown.saturating_sub(MAX_TOWN_WORDS / 2);
            let is_place_or_number =
                |word: usize| self.is_place(word) || self.words[word].starts_with_digit();
            let best = (first..=unknown)
                .flat_map(|start| self.ranges_from(start, MAX_TOWN_WORDS / 2 + 1))
                .filter(|range| range.contains(&unknown))
                .filter(|range| !range.clone().any(is_place_or_number))
                .filter_map(|range| {
                    let similar = index.localities.similar(&self.key(&range));
                    Some((similar.into_iter().next()?, range))
                })
                .min_by_key(|(similar, range)| (similar.edits, Reverse(range.len())));
            if let Some((similar, words)) = best {
                self.towns.push(ParsedTown {
                    words,
                    localities: lookup.localities(&similar.word)?,
                    edits: similar.edits,
                });
            }
        }
        Ok(())
    }

    /// Whether a word occurs in a street's name, or is never corrected: numbers, short words,
    /// street types and words of units such as floors.
    fn is_known(&self, word: usize, index: &Index) -> bool {
        let text = &self.words[word].text;
        self.words[word].starts_with_digit()
            || text.len() < 4
            || index.words.contains(text)
            || self.country.is_indoor_word(text)
            || self.country.is_street_type(text)
    }

    /// The word ranges that start at a word and stay within its part of the query, such as the text
    /// between two commas; shortest first.
    fn ranges_from(
        &self,
        start: usize,
        max_words: usize,
    ) -> impl DoubleEndedIterator<Item = Range<usize>> + use<> {
        let part = self.words[start].part;
        let length = self.words[start..]
            .iter()
            .take(max_words)
            .take_while(|word| word.part == part)
            .count();
        (1..=length).map(move |length| start..start + length)
    }

    /// Finds the words of street names that are equal or similar to the words of the query.
    pub(super) fn word_candidates(&self, index: &Index, spell_check: SpellCheck) -> WordCandidates {
        let candidates = self.words.iter().enumerate().map(|(position, word)| {
            let known = index.words.contains(&word.text);
            let mut words = HashMap::new();
            let may_be_misspelt = spell_check == SpellCheck::AllWords && !self.is_place(position);
            if !known && spell_check != SpellCheck::Off || may_be_misspelt {
                let similar = index.words.similar(&word.text).into_iter();
                words.extend(
                    similar
                        .filter(|similar| !known || similar.edits == 1)
                        .map(|similar| (similar.word, similar.edits)),
                );
            }
            if known {
                words.insert(word.text.clone(), 0);
            }
            words
        });
        WordCandidates(candidates.collect())
    }
}

/// The words to correct.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SpellCheck {
    Off,
    /// Words that occur in no street name.
    UnknownWords,
    AllWords,
}

/// For each word of a query, the equal or similar words of street names with their edit distances.
pub(super) struct WordCandidates(pub(super) Vec<HashMap<String, u8>>);

impl WordCandidates {
    pub(super) fn have_corrections(&self) -> bool {
        self.0
            .iter()
            .flat_map(HashMap::values)
            .any(|edits| *edits > 0)
    }
}
