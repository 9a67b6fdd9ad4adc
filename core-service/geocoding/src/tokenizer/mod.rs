//! Splits an address into normalized words, so that case, accents and abbreviations do not matter.

mod country;
mod languages;
#[cfg(test)]
mod tests;

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

pub(crate) use country::{Country, address_line};

/// Further words are ignored; the longest real addresses have about twenty.
const MAX_WORDS: usize = 40;
/// Further characters are ignored.
const MAX_CHARACTERS: usize = 1000;

/// A word of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The normalized form.
    pub(crate) text: String,
    /// The original form.
    pub(crate) written: String,
    /// The index of its part; see [`parts`].
    pub(crate) part: usize,
}

impl Word {
    pub(crate) fn has_digit(&self) -> bool {
        self.text.contains(|c: char| c.is_ascii_digit())
    }

    pub(crate) fn starts_with_digit(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// Splits a text into words by the languages of a country, without articles.
pub(crate) fn tokenize(text: &str, country: &Country) -> Vec<Word> {
    let text: String = text.nfc().take(MAX_CHARACTERS).collect();
    let mut words: Vec<Word> = Vec::new();
    for (part, text) in parts(&text).enumerate() {
        let text = country.without_possessives(text);
        for written in text.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)) {
            let folded = fold(written);
            if folded.is_empty() || country.is_article(&folded) {
                continue;
            }
            let text = country.expand(&folded);
            match words.last_mut() {
                Some(last) if last.part == part && country.is_compound(&last.text, &text) => {
                    last.text.push_str(&text);
                    last.written = format!("{} {written}", last.written);
                }
                _ => words.push(Word {
                    text,
                    written: written.to_owned(),
                    part,
                }),
            }
        }
    }
    words.truncate(MAX_WORDS);
    words
}

/// The normalized form of a name: equal for spellings that differ in case, accents, articles and
/// abbreviations.
pub(crate) fn key(text: &str, country: &Country) -> String {
    key_of(&tokenize(text, country))
}

/// The normalized form of words, as the index spells names.
pub(crate) fn key_of(words: &[Word]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

/// The original form of words.
pub(crate) fn written(words: &[Word]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.written.as_str()).collect();
    words.join(" ")
}

/// The country and its regions at the end of an address, last first; none before the word at
/// `first`.
pub(crate) fn regions_at_end(words: &[Word], country: &Country, first: usize) -> Vec<Range<usize>> {
    const MAX_REGION_WORDS: usize = 4;
    let mut regions = Vec::new();
    let mut end = words.len();
    while let Some(start) = (end.saturating_sub(MAX_REGION_WORDS).max(first)..end).find(|start| {
        let key = key_of(&words[*start..end]);
        country.is_country_name(&key) || country.is_region(&key)
    }) {
        regions.push(start..end);
        end = start;
    }
    regions
}

/// Whether two names are of the same town: `Bruxelles` and `Bruxelles - Brussel`, `New York` and
/// `City of New York`, `Cologne` and `Köln`.
pub(crate) fn is_same_name(name: &str, other: &str, country: &Country) -> bool {
    let spaced = |name: &str| format!(" {} ", key(name, country));
    let name = spaced(name);
    names_in(other).any(|part| {
        let part = spaced(Country::town_without_district(part));
        !part.trim().is_empty()
            && (part.contains(&name)
                || name.contains(&part)
                || languages::are_of_one_town(name.trim(), part.trim()))
    })
}

/// Whether two names are of the same town in different languages: `Cologne` and `Köln`.
pub(crate) fn is_translation(name: &str, other: &str, country: &Country) -> bool {
    let name = key(name, country);
    names_in(other).any(|part| languages::are_of_one_town(&name, &key(part, country)))
}

/// The names in a town's name, which may have one for each language of the country.
pub(crate) fn names_in(name: &str) -> impl Iterator<Item = &str> {
    name.split([',', '/', '(', ')'])
        .flat_map(|part| part.split(" - "))
}

/// The parts of an address between commas, line breaks, brackets and spaced dashes.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', '\n', '\r', '\t', '|', '(', ')'])
        .flat_map(|part| part.split(" - "))
        .flat_map(|part| part.split(" – "))
}

/// Converts to lower case without accents, keeps only letters and digits, and splits ligatures.
pub(crate) fn fold(text: &str) -> String {
    text.nfkd().flat_map(char::to_lowercase).fold(
        String::with_capacity(text.len()),
        |mut folded, c| {
            match c {
                'œ' => folded.push_str("oe"),
                'æ' => folded.push_str("ae"),
                'ß' => folded.push_str("ss"),
                'ø' => folded.push('o'),
                'ł' => folded.push('l'),
                'đ' => folded.push('d'),
                c if c.is_alphanumeric() => folded.push(c),
                _ => {}
            }
            folded
        },
    )
}
