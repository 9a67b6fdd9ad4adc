//! Matches the name of a street with the words of a query.

use std::ops::Range;

use super::parsed_query::{ParsedQuery, WordCandidates};

/// A match of a street's name in a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StreetMatch {
    pub(super) words: Range<usize>,
    /// Whether the query has the street type, if the name has one.
    pub(super) has_street_type: bool,
    /// From 0 to 1.
    pub(super) confidence: f64,
    /// Positions of misspelt words, with the correct spelling.
    pub(super) spellings: Vec<(usize, String)>,
}

/// The factor for each edit of a word.
const EDIT: f64 = 0.92;
/// The factor for an added or omitted title, or an initial instead of a name.
const TITLE_OR_INITIAL: f64 = 0.95;
/// The factor for an omitted street type: `Rivoli` instead of `Rue de Rivoli`.
const NO_STREET_TYPE: f64 = 0.85;
/// The maximum of edits in a whole name: with more, it is another street.
const MAX_EDITS: u8 = 3;

impl StreetMatch {
    /// The best position where a query has all words of a street's name in order, without
    /// adjacent words that may belong to the name of another street.
    pub(super) fn find(
        name: &str,
        parsed: &ParsedQuery,
        candidates: &WordCandidates,
    ) -> Option<Self> {
        let name: Vec<_> = name.split(' ').collect();
        (0..parsed.words.len())
            .filter_map(|start| match_at(&name, start, parsed, candidates))
            .filter(|found| is_isolated(&found.words, parsed))
            .max_by(|a, b| a.confidence.total_cmp(&b.confidence))
    }
}

fn match_at(
    name: &[&str],
    start: usize,
    parsed: &ParsedQuery,
    candidates: &WordCandidates,
) -> Option<StreetMatch> {
    let country = parsed.country;
    let mut found = StreetMatch {
        words: start..start,
        has_street_type: true,
        confidence: 1.0,
        spellings: Vec::new(),
    };
    let mut edits = 0;
    let mut has_name = false;
    let mut next = start;
    for (position, word) in name.iter().enumerate() {
        if position > 0
            && let Some(title) = parsed.words.get(next)
            && country.is_title(&title.text)
            && title.text != *word
            && parsed.words.len() > next + 1
        {
            found.confidence *= TITLE_OR_INITIAL;
            next += 1;
        }
        let candidate = candidates.0.get(next).and_then(|words| words.get(*word));
        if let Some(distance) = candidate {
            if *distance > 0 {
                edits += distance;
                found.confidence *= EDIT.powi(i32::from(*distance));
                found.spellings.push((next, (*word).to_owned()));
            }
            has_name |= !country.is_street_type(word) || name.len() == 1;
            next += 1;
        } else if position > 0 && position + 1 < name.len() && is_initial(parsed, next, word) {
            found.confidence *= TITLE_OR_INITIAL;
            next += 1;
        } else if country.is_title(word) && name.len() > 1 {
            found.confidence *= TITLE_OR_INITIAL;
        } else if position == 0 && country.is_street_type(word) && name.len() > 1 {
            found.confidence *= NO_STREET_TYPE;
            found.has_street_type = false;
        } else {
            return None;
        }
    }
    found.words.end = next;
    // A town's name without a street type is not the name of a street.
    let is_town = found.confidence < 1.0 && found.words.clone().all(|word| parsed.is_place(word));
    // If all words are street types, as in `Rue du Quai`, all must match.
    has_name |=
        name.iter().all(|word| country.is_street_type(word)) && found.words.len() == name.len();
    (has_name && !is_town && edits <= MAX_EDITS).then_some(found)
}

fn is_initial(parsed: &ParsedQuery, word: usize, name: &str) -> bool {
    parsed
        .words
        .get(word)
        .is_some_and(|word| word.text.len() == 1 && name.starts_with(&word.text))
}

/// Whether no adjacent word of the same part may belong to the name.
fn is_isolated(street: &Range<usize>, parsed: &ParsedQuery) -> bool {
    let words = &parsed.words;
    let is_separate = |word: usize| {
        let text = &words[word].text;
        words[word].starts_with_digit()
            || parsed.is_place(word)
            || parsed.country.is_indoor_word(text)
            || parsed.country.is_number_prefix(text)
    };
    let before = street
        .start
        .checked_sub(1)
        .filter(|before| words[*before].part == words[street.start].part);
    let ends_number = |word: usize| {
        parsed.country.is_number_suffix(&words[word].text)
            && word > 0
            && words[word - 1].starts_with_digit()
    };
    let after = Some(street.end)
        .filter(|after| *after < words.len() && words[*after].part == words[street.end - 1].part);
    before.is_none_or(|before| is_separate(before) || ends_number(before))
        && after.is_none_or(is_separate)
}
