//! Is a street named in a text?

use std::ops::Range;

use super::text::{Meanings, Text};

/// Where a text names a street, and how well.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Naming {
    pub(super) words: Range<usize>,
    /// Was the kind of the street written, if it has one?
    pub(super) has_kind: bool,
    /// How sure it is, from 0 to 1.
    pub(super) confidence: f64,
    /// Words that are written otherwise, and the right ones.
    pub(super) spellings: Vec<(usize, String)>,
}

/// A word that is another by one edit.
const EDIT: f64 = 0.92;
/// A title too many or too few, or an initial for a name.
const ABRIDGED: f64 = 0.95;
/// `Rivoli` for `Rue de Rivoli`.
const NO_KIND: f64 = 0.85;
/// Edits that make another street of it.
const MOST_EDITS: u8 = 3;

impl Naming {
    /// Where a text has all words of a street's name, one after the other and nothing else beside
    /// them that may belong to the name of another street.
    pub(super) fn find(name: &str, text: &Text, meanings: &Meanings) -> Option<Self> {
        let name: Vec<_> = name.split(' ').collect();
        (0..text.words.len())
            .filter_map(|start| at(&name, start, text, meanings))
            .filter(|naming| stands_alone(&naming.words, text))
            .max_by(|a, b| a.confidence.total_cmp(&b.confidence))
    }
}

/// How much of a street's name is in a text, from 0 to 1; kinds of streets and names of towns
/// don't count.
pub(super) fn likeness(name: &str, text: &Text, meanings: &Meanings) -> f64 {
    let (mut found, mut all) = (0_u32, 0_u32);
    for word in name.split(' ').filter(|word| !text.country.is_kind(word)) {
        all += 1;
        let is_there = (0..text.words.len())
            .any(|position| !text.is_place(position) && meanings.0[position].contains_key(word));
        found += u32::from(is_there);
    }
    f64::from(found) / f64::from(all.max(1))
}

fn at(name: &[&str], start: usize, text: &Text, meanings: &Meanings) -> Option<Naming> {
    let country = text.country;
    let mut naming = Naming {
        words: start..start,
        has_kind: true,
        confidence: 1.0,
        spellings: Vec::new(),
    };
    let mut edits = 0;
    let mut names_it = false;
    let mut next = start;
    for (place, word) in name.iter().enumerate() {
        if place > 0
            && let Some(title) = text.words.get(next)
            && country.is_title(&title.text)
            && title.text != *word
            && text.words.len() > next + 1
        {
            naming.confidence *= ABRIDGED;
            next += 1;
        }
        let meaning = meanings.0.get(next).and_then(|meaning| meaning.get(*word));
        if let Some(distance) = meaning {
            if *distance > 0 {
                edits += distance;
                naming.confidence *= EDIT.powi(i32::from(*distance));
                naming.spellings.push((next, (*word).to_owned()));
            }
            names_it |= !country.is_kind(word) || name.len() == 1;
            next += 1;
        } else if place > 0 && place + 1 < name.len() && is_initial(text, next, word) {
            naming.confidence *= ABRIDGED;
            next += 1;
        } else if country.is_title(word) && name.len() > 1 {
            naming.confidence *= ABRIDGED;
        } else if place == 0 && country.is_kind(word) && name.len() > 1 {
            naming.confidence *= NO_KIND;
            naming.has_kind = false;
        } else {
            return None;
        }
    }
    naming.words.end = next;
    // A town's name is no street's without its kind.
    let is_town = naming.confidence < 1.0 && naming.words.clone().all(|word| text.is_place(word));
    // All kinds, as in `Grande Rue du Quai`: then each of them counts.
    names_it |= name.iter().all(|word| country.is_kind(word)) && naming.words.len() == name.len();
    (names_it && !is_town && edits <= MOST_EDITS).then_some(naming)
}

fn is_initial(text: &Text, word: usize, name: &str) -> bool {
    text.words
        .get(word)
        .is_some_and(|word| word.text.len() == 1 && name.starts_with(&word.text))
}

/// Is there nothing right before and after it, in its part, that may belong to the name?
fn stands_alone(street: &Range<usize>, text: &Text) -> bool {
    let words = &text.words;
    let is_apart = |word: usize| {
        let text_of = &words[word].text;
        words[word].begins_with_digit()
            || text.is_place(word)
            || text.country.is_indoors(text_of)
            || text.country.is_number_mark(text_of)
    };
    let before = street
        .start
        .checked_sub(1)
        .filter(|before| words[*before].part == words[street.start].part);
    let ends_number = |word: usize| {
        text.country.is_number_suffix(&words[word].text)
            && word > 0
            && words[word - 1].begins_with_digit()
    };
    let after = Some(street.end)
        .filter(|after| *after < words.len() && words[*after].part == words[street.end - 1].part);
    before.is_none_or(|before| is_apart(before) || ends_number(before))
        && after.is_none_or(is_apart)
}
