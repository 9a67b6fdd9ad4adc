//! A query's words, and what they may mean apart from the street.

use std::{collections::HashMap, ops::Range};

use crate::{
    gazetteer::{
        dictionary::Similar,
        index::{Index, Locality, Lookup},
        place::code,
    },
    words::{self, Country, Word},
};

/// A query, read in the languages of a country.
pub(super) struct Text {
    pub(super) country: &'static Country,
    pub(super) words: Vec<Word>,
    /// Runs of words that are names of towns.
    pub(super) towns: Vec<Town>,
    /// Runs of words that are postcodes, or look like ones.
    pub(super) postcodes: Vec<Postcode>,
    /// Runs of words that are the country or one of its regions.
    pub(super) around: Vec<Range<usize>>,
}

pub(super) struct Town {
    pub(super) words: Range<usize>,
    pub(super) localities: Vec<Locality>,
    /// The name is misspelt.
    pub(super) edits: u8,
}

pub(super) struct Postcode {
    pub(super) words: Range<usize>,
    pub(super) code: String,
    /// Which towns have it; none if no address has it.
    pub(super) localities: Vec<i64>,
}

/// Words of the longest names of towns.
const LONGEST_TOWN: usize = 6;
/// Words of the longest names of regions.
const LONGEST_REGION: usize = 4;

impl Text {
    pub(super) fn read(
        text: &str,
        country: &'static Country,
        index: &Index,
        lookup: &Lookup<'_>,
    ) -> rusqlite::Result<Self> {
        let mut text = Self {
            country,
            words: words::read(text, country),
            towns: Vec::new(),
            postcodes: Vec::new(),
            around: Vec::new(),
        };
        text.find_around();
        text.find_postcodes(lookup)?;
        text.find_towns(index, lookup)?;
        Ok(text)
    }

    /// The words of a run, as they were written.
    pub(super) fn written(&self, run: Range<usize>) -> String {
        let written: Vec<_> = self.words[run]
            .iter()
            .map(|word| word.written.as_str())
            .collect();
        written.join(" ")
    }

    fn key(&self, run: Range<usize>) -> String {
        let words: Vec<_> = self.words[run]
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        words.join(" ")
    }

    /// Is a word part of a town's name, a postcode, a region or the country?
    pub(super) fn is_place(&self, word: usize) -> bool {
        self.towns.iter().any(|town| town.words.contains(&word))
            || self
                .postcodes
                .iter()
                .any(|postcode| postcode.words.contains(&word))
            || self.around.iter().any(|run| run.contains(&word))
    }

    /// The country and its regions, which stand at the end.
    fn find_around(&mut self) {
        let mut end = self.words.len();
        while let Some(start) = (1..=LONGEST_REGION.min(end))
            .rev()
            .map(|length| end - length)
            .find(|start| {
                let key = self.key(*start..end);
                *start > 0 && (self.country.is_named(&key) || self.country.is_region(&key))
            })
        {
            self.around.push(start..end);
            end = start;
        }
    }

    fn find_postcodes(&mut self, lookup: &Lookup<'_>) -> rusqlite::Result<()> {
        let mut start = 0;
        while start < self.words.len() {
            let mut length = 1;
            // `SW1A 2AA`, `1017 AB`, `110 00`.
            for words in [2, 1] {
                let run = start..start + words;
                if run.end > self.words.len()
                    || !self.words[run.clone()].iter().any(Word::has_digit)
                {
                    continue;
                }
                let code = code(&self.key(run.clone()));
                let localities = lookup.localities_at(&code)?;
                if !localities.is_empty() || (words == 1 && self.country.is_postcode(&code)) {
                    self.postcodes.push(Postcode {
                        words: run,
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
            let run = self
                .runs_from(start, LONGEST_TOWN)
                .rev()
                .find(|run| index.localities.contains(&self.key(run.clone())));
            match run {
                Some(run) if !self.is_place(start) => {
                    start = run.end;
                    let localities = lookup.localities(&self.key(run.clone()))?;
                    self.towns.push(Town {
                        words: run,
                        localities,
                        edits: 0,
                    });
                }
                _ => start += 1,
            }
        }
        self.find_misspelt_towns(index, lookup)
    }

    /// Towns of whose names a word is unknown.
    fn find_misspelt_towns(&mut self, index: &Index, lookup: &Lookup<'_>) -> rusqlite::Result<()> {
        for unknown in 0..self.words.len() {
            if self.is_place(unknown) || self.is_known(unknown, index) {
                continue;
            }
            let first = unknown.saturating_sub(LONGEST_TOWN / 2);
            let mut best: Option<(Similar, Range<usize>)> = None;
            for start in first..=unknown {
                for run in self.runs_from(start, LONGEST_TOWN / 2 + 1) {
                    let touches = run
                        .clone()
                        .any(|word| self.is_place(word) || self.words[word].begins_with_digit());
                    if !run.contains(&unknown) || touches {
                        continue;
                    }
                    let similar = index
                        .localities
                        .similar(&self.key(run.clone()))
                        .into_iter()
                        .next();
                    if let Some(similar) = similar
                        && best.as_ref().is_none_or(|(best, found)| {
                            (similar.edits, found.len()) < (best.edits, run.len())
                        })
                    {
                        best = Some((similar, run));
                    }
                }
            }
            if let Some((similar, words)) = best {
                self.towns.push(Town {
                    words,
                    localities: lookup.localities(&similar.word)?,
                    edits: similar.edits,
                });
            }
        }
        Ok(())
    }

    fn is_known(&self, word: usize, index: &Index) -> bool {
        let text = &self.words[word].text;
        self.words[word].begins_with_digit()
            || text.len() < 4
            || index.words.contains(text)
            || self.country.is_indoors(text)
            || self.country.is_kind(text)
    }

    /// Runs from a word within its part, the shortest first.
    fn runs_from(
        &self,
        start: usize,
        longest: usize,
    ) -> impl DoubleEndedIterator<Item = Range<usize>> + use<> {
        let part = self.words[start].part;
        let length = self.words[start..]
            .iter()
            .take(longest)
            .take_while(|word| word.part == part)
            .count();
        (1..=length).map(move |length| start..start + length)
    }

    /// What each word may be in a street's name.
    pub(super) fn meanings(&self, index: &Index, slips: Slips) -> Meanings {
        let meanings = self.words.iter().enumerate().map(|(position, word)| {
            let known = index.words.contains(&word.text);
            let mut meanings = HashMap::new();
            let is_read = slips == Slips::Anywhere && !self.is_place(position);
            if !known && slips != Slips::Nowhere || is_read {
                let similar = index.words.similar(&word.text).into_iter();
                meanings.extend(
                    similar
                        .filter(|similar| !known || similar.edits == 1)
                        .map(|similar| (similar.word, similar.edits)),
                );
            }
            if known {
                meanings.insert(word.text.clone(), 0);
            }
            meanings
        });
        Meanings(meanings.collect())
    }
}

/// Which words may be written wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slips {
    Nowhere,
    /// Those that are in no street's name.
    Unknown,
    /// Any.
    Anywhere,
}

/// For each word of a text the words of streets that it may be, and by how many edits.
pub(super) struct Meanings(pub(super) Vec<HashMap<String, u8>>);

impl Meanings {
    pub(super) fn are_misspelt(&self) -> bool {
        self.0
            .iter()
            .flat_map(HashMap::values)
            .any(|edits| *edits > 0)
    }
}
