//! The words of an address as people write them, made comparable, and the words of a language
//! that mean something in addresses.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// What the words of a language mean in addresses. All entries as [`Language::words`] gives them.
pub(super) struct Language {
    /// Abbreviation, whole word.
    abbreviations: &'static [(&'static str, &'static str)],
    /// Left out by people who write fast, so left out of every comparison.
    articles: &'static [&'static str],
    /// What stands after a house number and belongs to it, single letters aside.
    number_suffixes: &'static [&'static str],
    /// What begins a remark about the way inside the house.
    indoors: &'static [&'static str],
    /// Names of the country.
    countries: &'static [&'static str],
}

pub(super) const FRENCH: Language = Language {
    abbreviations: &[
        ("all", "allee"),
        ("av", "avenue"),
        ("ave", "avenue"),
        ("bd", "boulevard"),
        ("bld", "boulevard"),
        ("blvd", "boulevard"),
        ("boul", "boulevard"),
        ("bvd", "boulevard"),
        ("carr", "carrefour"),
        ("cdt", "commandant"),
        ("che", "chemin"),
        ("chem", "chemin"),
        ("col", "colonel"),
        ("crs", "cours"),
        ("dr", "docteur"),
        ("esp", "esplanade"),
        ("fbg", "faubourg"),
        ("fg", "faubourg"),
        ("gal", "general"),
        ("gen", "general"),
        ("imp", "impasse"),
        ("mal", "marechal"),
        ("pass", "passage"),
        ("pdt", "president"),
        ("pl", "place"),
        ("pres", "president"),
        ("prof", "professeur"),
        ("pte", "porte"),
        ("r", "rue"),
        ("rte", "route"),
        ("sq", "square"),
        ("st", "saint"),
        ("ste", "sainte"),
        ("vla", "villa"),
    ],
    articles: &["d", "de", "des", "du", "l", "la", "le", "les", "et"],
    number_suffixes: &["bis", "ter", "quater", "quinquies"],
    indoors: &[
        "acces",
        "apt",
        "app",
        "appartement",
        "appt",
        "bat",
        "batiment",
        "bp",
        "bureau",
        "cedex",
        "chez",
        "code",
        "cour",
        "cs",
        "digicode",
        "entree",
        "esc",
        "escalier",
        "etage",
        "hall",
        "interphone",
        "porte",
        "rdc",
        "residence",
        "sonnette",
    ],
    countries: &["france", "fr"],
};

impl Language {
    /// The words of a text: lower case without accents, abbreviations spelled out, articles left
    /// out.
    pub(super) fn words(&self, text: &str) -> Vec<String> {
        folded(text)
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty() && !self.articles.contains(word))
            .map(|word| {
                self.abbreviations
                    .iter()
                    .find(|(short, _)| *short == word)
                    .map_or(word, |(_, long)| long)
                    .to_owned()
            })
            .collect()
    }

    pub(super) fn is_number_suffix(&self, word: &str) -> bool {
        self.number_suffixes.contains(&word)
            || (word.len() == 1 && word.starts_with(|c: char| c.is_ascii_lowercase()))
    }

    pub(super) fn is_indoors(&self, word: &str) -> bool {
        self.indoors.contains(&word)
    }

    pub(super) fn is_country(&self, word: &str) -> bool {
        self.countries.contains(&word)
    }
}

/// Lower case, without accents; ligatures in two letters.
fn folded(text: &str) -> String {
    text.nfkd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .fold(String::with_capacity(text.len()), |mut folded, c| {
            match c {
                'œ' => folded.push_str("oe"),
                'æ' => folded.push_str("ae"),
                'ß' => folded.push_str("ss"),
                'ø' => folded.push('o'),
                'ł' => folded.push('l'),
                c => folded.push(c),
            }
            folded
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_the_same_words() {
        for (text, expected) in [
            ("24, Rue de la Paix", vec!["24", "rue", "paix"]),
            ("24 RUE DE LA PAIX", vec!["24", "rue", "paix"]),
            (
                "av. des Champs-Élysées",
                vec!["avenue", "champs", "elysees"],
            ),
            ("Av des champs elysees", vec!["avenue", "champs", "elysees"]),
            ("45 rue d'Ulm", vec!["45", "rue", "ulm"]),
            ("45 rue d’Ulm", vec!["45", "rue", "ulm"]),
            ("R. St-Honoré", vec!["rue", "saint", "honore"]),
            ("Rue du Sacré-Cœur", vec!["rue", "sacre", "coeur"]),
            ("12A", vec!["12a"]),
            (" ,;- ", vec![]),
        ] {
            assert_eq!(FRENCH.words(text), expected, "{text}");
        }
    }

    #[test]
    fn tables_are_written_the_way_words_are_compared() {
        let tables = [FRENCH.number_suffixes, FRENCH.indoors, FRENCH.countries];
        let whole = FRENCH.abbreviations.iter().map(|(_, whole)| whole);
        for word in tables.into_iter().flatten().chain(whole) {
            assert_eq!(FRENCH.words(word), [*word]);
        }
    }
}
