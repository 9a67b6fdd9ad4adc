//! Looks up the phrases of all languages.

use super::phrase::{PhraseKind, Phrases};
use super::{english, french, german, italian, spanish};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

const LANGUAGES: [Phrases; 5] = [
    english::PHRASES,
    french::PHRASES,
    german::PHRASES,
    spanish::PHRASES,
    italian::PHRASES,
];

/// A phrase, split into words.
struct Phrase {
    words: Vec<&'static str>,
    kind: PhraseKind,
}

/// The phrases of all languages, by their first word.
static PHRASES: LazyLock<HashMap<&str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases = HashMap::<&str, Vec<Phrase>>::new();
    for (phrase, kind) in LANGUAGES.into_iter().flatten() {
        let words: Vec<_> = phrase.split(' ').collect();
        let kind = *kind;
        phrases
            .entry(words[0])
            .or_default()
            .push(Phrase { words, kind });
    }
    phrases
});

/// The longest phrase at the start of these words, and its number of words. A number is a phrase
/// only before a unit, because `sept` is seven in French, but also an abbreviated month.
pub(super) fn first_phrase(words: &[Cow<'_, str>]) -> Option<(PhraseKind, usize)> {
    let candidates = PHRASES.get(words.first()?.as_ref())?;
    let is_number = |kind: PhraseKind| matches!(kind, PhraseKind::Number(_));
    candidates
        .iter()
        .filter(|phrase| {
            words
                .get(..phrase.words.len())
                .is_some_and(|words| words == phrase.words)
        })
        .map(|phrase| (phrase.kind, phrase.words.len()))
        .filter(|(kind, length)| !is_number(*kind) || starts_with_unit(words.get(*length..)))
        .max_by_key(|(kind, length)| (*length, is_number(*kind)))
}

fn starts_with_unit(words: Option<&[Cow<'_, str>]>) -> bool {
    let phrase = words.and_then(first_phrase);
    matches!(phrase, Some((PhraseKind::Unit(_) | PhraseKind::Hour, _)))
}

/// A word in lower case without accents, for lookup. A single letter keeps its accent, and
/// its case if it is ASCII, because it may be a military time zone: `à` and `y` are words, but `a`
/// and `Y` may be zones.
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
            // Combining accents.
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
    fn all_phrases_are_folded() {
        for (phrase, _) in LANGUAGES.iter().copied().flatten() {
            let folded: Vec<_> = phrase.split(' ').map(fold).collect();
            assert_eq!(folded.join(" "), *phrase);
        }
    }

    /// A phrase may occur twice only if one of the two is a number.
    #[test]
    fn phrases_of_a_language_are_unique() {
        for phrases in LANGUAGES {
            for (index, (phrase, kind)) in phrases.iter().enumerate() {
                let duplicate = phrases
                    .iter()
                    .skip(index + 1)
                    .find(|(other, _)| other == phrase);
                assert!(
                    duplicate.is_none_or(|(_, other)| matches!(kind, PhraseKind::Number(_))
                        != matches!(other, PhraseKind::Number(_))),
                    "{phrase}"
                );
            }
        }
    }

    #[test]
    fn composed_and_combining_accents_are_folded() {
        assert_eq!(fold("À"), "à");
        assert_eq!(fold("e\u{301}te\u{301}"), "ete");
        assert_eq!(fold("d’août"), "d'aout");
    }
}
