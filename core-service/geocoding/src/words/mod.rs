//! The words of an address as people write them, made comparable: one form for every case,
//! accent and abbreviation.

mod country;
mod dutch;
mod english;
mod french;
mod german;
mod italian;
mod language;
mod spanish;
#[cfg(test)]
mod tests;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

pub(crate) use country::Country;

/// Words of a text that are looked at: the longest real addresses have about twenty.
const MAX_WORDS: usize = 40;
/// Characters of a text that are looked at.
const MAX_CHARACTERS: usize = 1000;

/// A word of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// For comparing.
    pub(crate) text: String,
    /// For people.
    pub(crate) written: String,
    /// Which of the parts between commas and lines it is in.
    pub(crate) part: usize,
}

impl Word {
    pub(crate) fn has_digit(&self) -> bool {
        self.text.contains(|c: char| c.is_ascii_digit())
    }

    pub(crate) fn begins_with_digit(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// The words of a text in the languages of a country, articles left out.
pub(crate) fn read(text: &str, country: &Country) -> Vec<Word> {
    let text: String = text.nfc().take(MAX_CHARACTERS).collect();
    let mut words: Vec<Word> = Vec::new();
    for (part, text) in parts(&text).enumerate() {
        let text = country.without_possessives(text);
        for written in text.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)) {
            let folded = folded(written);
            if folded.is_empty() || country.is_article(&folded) {
                continue;
            }
            let text = country.whole(&folded);
            match words.last_mut() {
                Some(last) if last.part == part && country.is_glued(&last.text, &text) => {
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

/// The words of a name, joined: two spellings of one name have the same.
pub(crate) fn key(text: &str, country: &Country) -> String {
    let words: Vec<_> = read(text, country)
        .into_iter()
        .map(|word| word.text)
        .collect();
    words.join(" ")
}

/// The parts of an address between commas, lines and dashes that stand alone.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', '\n', '\r', '\t', '|', '(', ')'])
        .flat_map(|part| part.split(" - "))
        .flat_map(|part| part.split(" – "))
}

/// Lower case, without accents, letters and digits only; ligatures in two letters.
pub(crate) fn folded(text: &str) -> String {
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
