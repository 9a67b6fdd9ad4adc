//! What the phrases of a language mean, and how the writer's words are compared with them.

use super::{english, french, german, italian, spanish};

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

/// No phrase has more words.
const LONGEST: usize = 4;

/// The longest phrase at the beginning of these words, and how many of them it takes. `Count` is
/// a phrase only before a unit: `sept` is also a month.
pub(super) fn at_start(words: &[String]) -> Option<(Sense, usize)> {
    (1..=LONGEST.min(words.len())).rev().find_map(|length| {
        let is_before_unit = || {
            matches!(
                at_start(words.get(length..)?),
                Some((Sense::Unit(_) | Sense::Hour, _))
            )
            .then_some(())
        };
        let candidates = LANGUAGES
            .iter()
            .copied()
            .flatten()
            .filter(|(phrase, _)| is_said(phrase, &words[..length]));
        candidates
            .filter(|(_, sense)| !matches!(sense, Sense::Count(_)) || is_before_unit().is_some())
            .map(|(_, sense)| (*sense, length))
            .max_by_key(|(sense, _)| matches!(sense, Sense::Count(_)))
    })
}

fn is_said(phrase: &str, words: &[String]) -> bool {
    phrase.bytes().next() == words.first().and_then(|word| word.bytes().next())
        && phrase.split(' ').eq(words.iter().map(String::as_str))
}

/// A word without capitals and accents, to be looked up. A single letter keeps its accent: `à` is
/// a word, `a` might be a zone.
pub(super) fn fold(word: &str) -> String {
    if word.chars().count() == 1 {
        return word.to_lowercase();
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
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_folded_and_short_enough() {
        for (phrase, _) in LANGUAGES.iter().copied().flatten() {
            let folded: Vec<String> = phrase.split(' ').map(fold).collect();
            assert_eq!(folded.join(" "), *phrase);
            assert!(phrase.split(' ').count() <= LONGEST, "{phrase}");
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
