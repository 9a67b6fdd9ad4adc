//! The address conventions of a country.

use std::{borrow::Cow, sync::LazyLock};

use super::languages::{DUTCH, ENGLISH, FRENCH, GERMAN, ITALIAN, Language, SPANISH};

/// A country's languages and the formats of its addresses and numbers.
pub(crate) struct Country {
    /// ISO 3166-1 alpha-2.
    pub(super) code: &'static str,
    /// Its names in the languages of the platform and its own, normalized as by [`super::key`].
    pub(super) names: &'static [&'static str],
    languages: &'static [&'static LazyLock<Language>],
    /// `24 Rue de la Paix` rather than `Hauptstraße 24`.
    number_first: bool,
    /// `75002 Paris` rather than `London SW1A 2AA`.
    postcode_first: bool,
    /// The number of digits of an all-digit postcode.
    postcode_digits: Option<usize>,
    /// The maximum number of digits of a house number.
    max_number_digits: usize,
}

macro_rules! countries {
    ($($code:literal $names:expr, $languages:expr, $number:ident, $postcode:ident, $postcode_digits:expr, $max_number_digits:literal;)+) => {
        &[$(Country {
            code: $code,
            names: &$names,
            languages: &$languages,
            number_first: countries!($number),
            postcode_first: countries!($postcode),
            postcode_digits: $postcode_digits,
            max_number_digits: $max_number_digits,
        }),+]
    };
    (number_first) => { true };
    (number_last) => { false };
    (postcode_first) => { true };
    (postcode_last) => { false };
}

pub(super) static COUNTRIES: &[Country] = countries! {
    "AT" ["austria", "osterreich", "autriche", "oostenrijk", "at"], [&GERMAN], number_last, postcode_first, Some(4), 3;
    "BE" ["belgium", "belgie", "belgique", "belgien", "belgica", "belgio", "be"], [&FRENCH, &DUTCH], number_last, postcode_first, Some(4), 4;
    "CA" ["canada", "kanada", "ca"], [&ENGLISH, &FRENCH], number_first, postcode_last, None, 5;
    "CH" ["switzerland", "schweiz", "suisse", "svizzera", "suiza", "zwitserland", "ch"], [&GERMAN, &FRENCH, &ITALIAN], number_last, postcode_first, Some(4), 3;
    "DE" ["germany", "deutschland", "allemagne", "alemania", "germania", "duitsland"], [&GERMAN], number_last, postcode_first, Some(5), 4;
    "ES" ["spain", "espana", "espagne", "spanien", "spagna", "spanje"], [&SPANISH], number_last, postcode_first, Some(5), 4;
    "FR" ["france", "frankreich", "francia", "frankrijk", "fr"], [&FRENCH], number_first, postcode_first, Some(5), 4;
    "GB" [
        "united kingdom", "great britain", "uk", "gb", "royaume uni", "grande bretagne", "vereinigtes konigreich",
        "grossbritannien", "reino unido", "gran bretana", "regno unito", "gran bretagna", "verenigd koninkrijk",
    ], [&ENGLISH], number_first, postcode_last, None, 4;
    "IE" ["ireland", "eire", "irlande", "irland", "irlanda", "ierland"], [&ENGLISH], number_first, postcode_last, None, 4;
    "IT" ["italy", "italia", "italie", "italien"], [&ITALIAN], number_last, postcode_first, Some(5), 4;
    "LU" ["luxembourg", "luxemburg", "luxemburgo", "lussemburgo"], [&FRENCH, &GERMAN], number_first, postcode_first, Some(4), 3;
    "NL" [
        "netherlands", "nederland", "holland", "nl", "pays bas", "hollande", "niederlande", "paises bajos", "holanda",
        "paesi bassi", "olanda",
    ], [&DUTCH], number_last, postcode_first, None, 4;
    "US" [
        "united states", "united states america", "usa", "us", "etats unis", "etats unis d amerique",
        "vereinigte staaten", "vereinigte staaten von amerika", "estados unidos", "stati uniti", "verenigde staten",
    ], [&ENGLISH], number_first, postcode_last, Some(5), 5;
};

/// The conventions of any other country.
static DEFAULT: Country = Country {
    code: "",
    names: &[],
    languages: &[&ENGLISH],
    number_first: true,
    postcode_first: false,
    postcode_digits: None,
    max_number_digits: 5,
};

/// Formats the known parts in one line: `24 Rue de la Paix, 75002 Paris`.
pub(crate) fn address_line(house: [&str; 2], place: [&str; 2]) -> String {
    let join = |[first, second]: [&str; 2], separator: &str| match (first, second) {
        ("", only) | (only, "") => only.to_owned(),
        (first, second) => format!("{first}{separator}{second}"),
    };
    join([&join(house, " "), &join(place, " ")], ", ")
}

impl Country {
    /// Looks up an ISO 3166-1 alpha-2 code.
    pub(crate) fn of(code: &str) -> &'static Self {
        COUNTRIES
            .iter()
            .find(|country| country.code.eq_ignore_ascii_case(code))
            .unwrap_or(&DEFAULT)
    }

    /// Formats an address in one line.
    pub(crate) fn format(&self, number: &str, street: &str, postcode: &str, town: &str) -> String {
        let house = if self.number_first {
            [number, street]
        } else {
            [street, number]
        };
        let place = if self.postcode_first {
            [postcode, town]
        } else {
            [town, postcode]
        };
        address_line(house, place)
    }

    pub(crate) fn has_postcode_first(&self) -> bool {
        self.postcode_first
    }

    /// Removes the district from a town's name: `Paris 2e Arrondissement` is Paris.
    pub(crate) fn town_without_district(name: &str) -> &str {
        name.strip_suffix(" Arrondissement")
            .and_then(|name| name.rsplit_once(' '))
            .filter(|(_, ordinal)| ordinal.starts_with(|c: char| c.is_ascii_digit()))
            .map_or(name, |(town, _)| town)
    }

    pub(crate) fn is_country_name(&self, key: &str) -> bool {
        self.names.contains(&key)
    }

    pub(crate) fn is_region(&self, key: &str) -> bool {
        self.any_language(|language| language.regions.contains(&key))
    }

    pub(crate) fn is_street_type(&self, word: &str) -> bool {
        self.any_language(|language| language.street_types.contains(&word))
    }

    pub(crate) fn is_title(&self, word: &str) -> bool {
        self.any_language(|language| language.titles.contains(&word))
    }

    pub(crate) fn is_number_prefix(&self, word: &str) -> bool {
        self.any_language(|language| language.number_prefixes.contains(&word))
    }

    pub(crate) fn is_number_suffix(&self, word: &str) -> bool {
        self.any_language(|language| language.number_suffixes.contains(&word))
            || (word.len() == 1 && word.starts_with(|c: char| c.is_ascii_lowercase()))
    }

    pub(crate) fn is_indoor_word(&self, word: &str) -> bool {
        self.any_language(|language| language.indoor_words.contains(&word))
    }

    /// Whether a number before this word is a floor.
    pub(crate) fn is_floor_word(&self, word: &str) -> bool {
        self.any_language(|language| language.floor_words.contains(&word))
    }

    /// Whether a word has the form of an all-digit postcode.
    pub(crate) fn is_postcode(&self, word: &str) -> bool {
        word.bytes().all(|byte| byte.is_ascii_digit()) && self.postcode_digits == Some(word.len())
    }

    /// Whether a text without spaces has the form of a Dutch postcode, in the Netherlands.
    pub(crate) fn is_dutch_postcode(&self, code: &str) -> bool {
        let (digits, letters) = code.split_at_checked(4).unwrap_or_default();
        self.code == "NL"
            && code.len() == 6
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    }

    /// Whether letters (`a`) and digits (`9`) have one of the several shapes of British or Irish
    /// postcodes.
    pub(crate) fn is_lettered_postcode(&self, shape: &str) -> bool {
        const EIRCODE_CHARACTERS: usize = 7;
        const ROUTING_KEYS: [&str; 2] = ["a99", "a9a"];
        match self.code {
            "GB" => shape
                .strip_suffix("9aa")
                .is_some_and(|area| ["a9", "a99", "a9a", "aa9", "aa99", "aa9a"].contains(&area)),
            // The second half has a digit; a word in its position has none.
            "IE" => ROUTING_KEYS
                .iter()
                .find_map(|key| shape.strip_prefix(key))
                .is_some_and(|rest| shape.len() == EIRCODE_CHARACTERS && rest.contains('9')),
            _ => false,
        }
    }

    /// Whether a number with this many digits may be a house number.
    pub(crate) fn may_be_house_number(&self, digits: usize) -> bool {
        (1..=self.max_number_digits).contains(&digits)
    }

    pub(super) fn is_article(&self, word: &str) -> bool {
        self.any_language(|language| language.articles.contains(&word))
    }

    pub(super) fn expand(&self, word: &str) -> String {
        let mut groups = self
            .languages
            .iter()
            .flat_map(|language| &language.synonyms);
        if let Some(group) = groups.find(|group| group.contains(&word)) {
            return group[0].to_owned();
        }
        let mut suffixes = self
            .languages
            .iter()
            .flat_map(|language| &language.suffixes);
        let expanded = suffixes.find_map(|(short, long)| {
            let stem = word.strip_suffix(short)?;
            (stem.chars().count() >= 3).then(|| format!("{stem}{long}"))
        });
        expanded.unwrap_or_else(|| word.to_owned())
    }

    /// Whether two words form one compound word.
    pub(super) fn is_compound(&self, first: &str, second: &str) -> bool {
        !first.starts_with(|c: char| c.is_ascii_digit())
            && self.any_language(|language| language.compound_street_types.contains(&second))
    }

    pub(super) fn without_possessives<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.any_language(|language| language.possessive) && text.contains(['\'', '’']) {
            text.replace("'s", "s").replace("’s", "s").into()
        } else {
            text.into()
        }
    }

    fn any_language(&self, matches: impl Fn(&Language) -> bool) -> bool {
        self.languages.iter().any(|language| matches(language))
    }
}
