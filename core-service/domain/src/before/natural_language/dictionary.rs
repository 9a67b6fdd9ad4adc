//! Looks up the phrases of all languages.

use super::names;
use super::phrases::{PHRASES, PhraseKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// A phrase, split into words.
struct Phrase {
    words: Vec<String>,
    kind: PhraseKind,
}

/// All phrases and names, by their first word. A name that is a phrase too, such as `di`, has the
/// meaning of the phrase.
static BY_FIRST_WORD: LazyLock<HashMap<String, Vec<Phrase>>> = LazyLock::new(|| {
    let is_phrase = |name: &str| {
        all_phrases().any(|(kind, phrase)| phrase == name && !matches!(kind, PhraseKind::Number(_)))
    };
    let names = names::all().into_iter();
    let names = names
        .filter(|(name, _)| !is_phrase(name))
        .map(|(name, meaning)| (PhraseKind::Replacement(meaning), name));
    let phrases = all_phrases().map(|(kind, phrase)| (kind, phrase.to_owned()));
    let mut by_first_word = HashMap::<String, Vec<Phrase>>::new();
    for (kind, phrase) in phrases.chain(names) {
        let words: Vec<_> = phrase.split(' ').map(str::to_owned).collect();
        let of_word = by_first_word.entry(words[0].clone()).or_default();
        of_word.push(Phrase { words, kind });
    }
    by_first_word
});

fn all_phrases() -> impl Iterator<Item = (PhraseKind, &'static str)> {
    let phrases = PHRASES.iter();
    phrases.flat_map(|(kind, phrases)| phrases.split(", ").map(|phrase| (*kind, phrase)))
}

/// The longest phrase at the start of these words, and its number of words. A number is a phrase
/// only before a unit, because `sept` is seven in French, but also an abbreviated month.
pub(super) fn first_phrase(words: &[Cow<'_, str>]) -> Option<(PhraseKind, usize)> {
    let candidates = BY_FIRST_WORD.get(words.first()?.as_ref())?;
    let is_number = |kind: PhraseKind| matches!(kind, PhraseKind::Number(_));
    candidates
        .iter()
        .filter(|phrase| {
            words
                .get(..phrase.words.len())
                .is_some_and(|words| phrase.words == words)
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
    if word.len() == 1 {
        return word.into();
    }
    if word.chars().count() == 1 {
        return word.to_lowercase().into();
    }
    let mut folded = String::with_capacity(word.len());
    for char in word.nfd().flat_map(char::to_lowercase) {
        match char {
            'ß' => folded.push_str("ss"),
            '’' => folded.push('\''),
            char if is_combining_mark(char) => {}
            char => folded.push(char),
        }
    }
    folded.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_phrases_are_folded() {
        for (_, phrase) in all_phrases() {
            let folded: Vec<_> = phrase.split(' ').map(fold).collect();
            assert_eq!(folded.join(" "), phrase);
        }
    }

    #[test]
    fn a_phrase_occurs_twice_only_if_one_of_the_two_is_a_number() {
        let mut seen = HashSet::new();
        for (kind, phrase) in all_phrases() {
            let is_number = matches!(kind, PhraseKind::Number(_));
            assert!(seen.insert((phrase, is_number)), "{phrase}");
        }
    }

    #[test]
    fn names_with_two_meanings_are_phrases() {
        let mut names = HashMap::new();
        for (name, meaning) in names::all() {
            let first = *names.entry(name.clone()).or_insert(meaning);
            let is_phrase = all_phrases().any(|(_, phrase)| phrase == name);
            assert!(first == meaning || is_phrase, "{name}: {first}, {meaning}");
        }
        assert_eq!(names.get("dez"), Some(&"december"));
        assert_eq!(names.get("janv"), Some(&"january"));
        assert_eq!(names.get("mie"), Some(&"wednesday"));
    }

    #[test]
    fn composed_and_combining_accents_are_folded() {
        assert_eq!(fold("À"), "à");
        assert_eq!(fold("e\u{301}te\u{301}"), "ete");
        assert_eq!(fold("d’août"), "d'aout");
    }
}
