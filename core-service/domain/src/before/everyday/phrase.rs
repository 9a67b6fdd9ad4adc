//! What the phrases of a language mean, and how the writer's words are compared with them.

use super::{english, french, german, italian, spanish};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a phrase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// These words of the strict grammar.
    Words(&'static str),
    /// Nothing of its own: `before`, `at the`.
    Link,
    /// Nothing of its own, within a distance.
    And,
    /// Nothing of its own, unless it stands after a number: German `am`, which there is a meridian.
    LinkButAfterNumber,
    /// A time follows, even if it is only an hour: `um 10`.
    AtHour,
    /// A distance from now follows.
    In,
    /// A distance from now or a day follows.
    Within,
    /// A distance back from now follows.
    Since,
    /// The distance before it starts now.
    FromNow,
    /// The distance before it goes back from now.
    Ago,
    /// A number in a distance: `an`, `zwei`.
    Count(&'static str),
    Unit(&'static str),
    /// Hours in a distance, the hour of the day after a preposition: `à 10 heures`.
    Hour,
    /// The number before it is an hour of the day: `10 Uhr`.
    OClock,
    /// The weekday or unit before it is the next one: `lundi prochain`.
    NextBefore,
    /// The weekday or unit before it is the last one.
    LastBefore,
    /// Today, at this hour if no other is said.
    Evening(i64),
}

/// Phrases without capitals and accents, a blank between words.
pub(super) type Phrases = &'static [(&'static str, Sense)];

const LANGUAGES: [Phrases; 5] = [
    english::PHRASES,
    french::PHRASES,
    german::PHRASES,
    spanish::PHRASES,
    italian::PHRASES,
];

/// A phrase word by word.
struct Phrase {
    words: Vec<&'static str>,
    sense: Sense,
}

/// The phrases of all languages by their first word.
static PHRASES: LazyLock<HashMap<&str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases = HashMap::<&str, Vec<Phrase>>::new();
    for (phrase, sense) in LANGUAGES.into_iter().flatten() {
        let words: Vec<_> = phrase.split(' ').collect();
        let sense = *sense;
        phrases
            .entry(words[0])
            .or_default()
            .push(Phrase { words, sense });
    }
    phrases
});

/// The longest phrase at the beginning of these words, and how many of them it takes. `Count` is
/// a phrase only before a unit: `sept` is also a month.
pub(super) fn at_start(words: &[Cow<'_, str>]) -> Option<(Sense, usize)> {
    let candidates = PHRASES.get(words.first()?.as_ref())?;
    let is_count = |sense: Sense| matches!(sense, Sense::Count(_));
    candidates
        .iter()
        .filter(|phrase| {
            let said = words.get(..phrase.words.len());
            said.is_some_and(|said| said == phrase.words)
        })
        .map(|phrase| (phrase.sense, phrase.words.len()))
        .filter(|(sense, length)| !is_count(*sense) || is_unit(words.get(*length..)))
        .max_by_key(|(sense, length)| (*length, is_count(*sense)))
}

fn is_unit(words: Option<&[Cow<'_, str>]>) -> bool {
    let sense = words.and_then(at_start);
    matches!(sense, Some((Sense::Unit(_) | Sense::Hour, _)))
}

/// A word without capitals and accents, to be looked up. A single letter stays nearly as it is:
/// `à` and `y` are words, `a` and `Y` might be zones.
pub(super) fn fold(word: &str) -> Cow<'_, str> {
    if word
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    {
        return word.into();
    }
    if word.chars().count() == 1 {
        let is_accented = !word.is_ascii();
        return if is_accented {
            word.to_lowercase().into()
        } else {
            word.into()
        };
    }
    let mut folded = String::with_capacity(word.len());
    for char in word.chars().flat_map(char::to_lowercase) {
        match char {
            'à' | 'á' | 'â' | 'ä' | 'ã' => folded.push('a'),
            'ç' => folded.push('c'),
            'è' | 'é' | 'ê' | 'ë' => folded.push('e'),
            'ì' | 'í' | 'î' | 'ï' => folded.push('i'),
            'ñ' => folded.push('n'),
            'ò' | 'ó' | 'ô' | 'ö' => folded.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => folded.push('u'),
            'ß' => folded.push_str("ss"),
            '’' => folded.push('\''),
            // Accents written as characters of their own.
            '\u{300}'..='\u{36f}' => {}
            char => folded.push(char),
        }
    }
    folded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_folded() {
        for (phrase, _) in LANGUAGES.iter().copied().flatten() {
            let folded: Vec<_> = phrase.split(' ').map(fold).collect();
            assert_eq!(folded.join(" "), *phrase);
        }
    }

    #[test]
    fn a_language_does_not_say_a_phrase_twice() {
        for phrases in LANGUAGES {
            for (index, (phrase, sense)) in phrases.iter().enumerate() {
                let again = phrases
                    .iter()
                    .skip(index + 1)
                    .find(|(other, _)| other == phrase);
                assert!(
                    again.is_none_or(|(_, other)| matches!(sense, Sense::Count(_))
                        != matches!(other, Sense::Count(_))),
                    "{phrase}"
                );
            }
        }
    }

    #[test]
    fn accents_are_folded_however_they_are_encoded() {
        assert_eq!(fold("À"), "à");
        assert_eq!(fold("e\u{301}te\u{301}"), "ete");
        assert_eq!(fold("d’août"), "d'aout");
    }
}
