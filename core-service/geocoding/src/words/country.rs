//! How a country writes addresses.

use std::borrow::Cow;

use super::{
    dutch::DUTCH, english::ENGLISH, french::FRENCH, german::GERMAN, italian::ITALIAN,
    language::Language, spanish::SPANISH,
};

/// A country's languages and the order of an address in it.
pub(crate) struct Country {
    /// ISO 3166-1 alpha-2.
    code: &'static str,
    /// What people call it, as [`super::key`] gives it.
    names: &'static [&'static str],
    languages: &'static [&'static Language],
    /// `24 Rue de la Paix`, not `Hauptstraße 24`.
    number_first: bool,
    /// `75002 Paris`, not `London SW1A 2AA`.
    postcode_first: bool,
    /// How many digits a postcode has, where it has nothing else.
    postcode_digits: Option<usize>,
    /// How many digits a house number has at most.
    number_digits: usize,
}

macro_rules! countries {
    ($($code:literal $names:expr, $languages:expr, $number:ident, $postcode:ident, $digits:expr, $most:literal;)+) => {
        &[$(Country {
            code: $code,
            names: &$names,
            languages: &$languages,
            number_first: countries!($number),
            postcode_first: countries!($postcode),
            postcode_digits: $digits,
            number_digits: $most,
        }),+]
    };
    (number_first) => { true };
    (number_last) => { false };
    (postcode_first) => { true };
    (postcode_last) => { false };
}

const COUNTRIES: &[Country] = countries! {
    "AT" ["austria", "osterreich", "at"], [&GERMAN], number_last, postcode_first, Some(4), 3;
    "BE" ["belgium", "belgie", "belgique", "be"], [&FRENCH, &DUTCH], number_last, postcode_first, Some(4), 4;
    "CA" ["canada", "ca"], [&ENGLISH, &FRENCH], number_first, postcode_last, None, 5;
    "CH" ["switzerland", "schweiz", "suisse", "svizzera", "ch"], [&GERMAN, &FRENCH, &ITALIAN], number_last, postcode_first, Some(4), 3;
    "DE" ["germany", "deutschland", "allemagne"], [&GERMAN], number_last, postcode_first, Some(5), 4;
    "ES" ["spain", "espana", "espagne"], [&SPANISH], number_last, postcode_first, Some(5), 4;
    "FR" ["france", "fr"], [&FRENCH], number_first, postcode_first, Some(5), 4;
    "GB" ["united kingdom", "great britain", "uk", "gb"], [&ENGLISH], number_first, postcode_last, None, 4;
    "IE" ["ireland", "eire"], [&ENGLISH], number_first, postcode_last, None, 4;
    "IT" ["italy", "italia", "italie"], [&ITALIAN], number_last, postcode_first, Some(5), 4;
    "LU" ["luxembourg", "luxemburg"], [&FRENCH, &GERMAN], number_first, postcode_first, Some(4), 3;
    "NL" ["netherlands", "nederland", "holland", "nl"], [&DUTCH], number_last, postcode_first, None, 4;
    "US" ["united states", "united states america", "usa", "us"], [&ENGLISH], number_first, postcode_last, Some(5), 5;
};

/// Where nothing is known of a country: English, as the world's forms are.
const ANY: Country = Country {
    code: "",
    names: &[],
    languages: &[&ENGLISH],
    number_first: true,
    postcode_first: false,
    postcode_digits: None,
    number_digits: 5,
};

impl Country {
    /// How a country (ISO 3166-1 alpha-2) writes.
    pub(crate) fn of(code: &str) -> &'static Self {
        COUNTRIES
            .iter()
            .find(|country| country.code.eq_ignore_ascii_case(code))
            .unwrap_or(&ANY)
    }

    /// An address in one line.
    pub(crate) fn format(&self, number: &str, street: &str, postcode: &str, town: &str) -> String {
        let join = |first: &str, second: &str| match (first, second) {
            ("", only) | (only, "") => only.to_owned(),
            (first, second) => format!("{first} {second}"),
        };
        let house = if self.number_first {
            join(number, street)
        } else {
            join(street, number)
        };
        let place = if self.postcode_first {
            join(postcode, town)
        } else {
            join(town, postcode)
        };
        match (house.as_str(), place.as_str()) {
            ("", only) | (only, "") => only.to_owned(),
            (house, place) => format!("{house}, {place}"),
        }
    }

    /// A town's name without its district: `Paris 2e Arrondissement` is Paris.
    pub(crate) fn town(name: &str) -> &str {
        name.strip_suffix(" Arrondissement")
            .and_then(|name| name.rsplit_once(' '))
            .filter(|(_, ordinal)| ordinal.starts_with(|c: char| c.is_ascii_digit()))
            .map_or(name, |(town, _)| town)
    }

    /// Is this the country's name?
    pub(crate) fn is_named(&self, key: &str) -> bool {
        self.names.contains(&key)
    }

    pub(crate) fn is_region(&self, key: &str) -> bool {
        self.any(|language| language.regions.contains(&key))
    }

    pub(crate) fn is_kind(&self, word: &str) -> bool {
        self.any(|language| language.kinds.contains(&word))
    }

    pub(crate) fn is_title(&self, word: &str) -> bool {
        self.any(|language| language.titles.contains(&word))
    }

    pub(crate) fn is_number_mark(&self, word: &str) -> bool {
        self.any(|language| language.number_marks.contains(&word))
    }

    pub(crate) fn is_number_suffix(&self, word: &str) -> bool {
        self.any(|language| language.number_suffixes.contains(&word))
            || (word.len() == 1 && word.starts_with(|c: char| c.is_ascii_lowercase()))
    }

    pub(crate) fn is_indoors(&self, word: &str) -> bool {
        self.any(|language| language.indoors.contains(&word))
    }

    /// Does a number stand before it that is no house's?
    pub(crate) fn is_floor(&self, word: &str) -> bool {
        self.any(|language| language.floors.contains(&word))
    }

    /// May these digits be a postcode?
    pub(crate) fn is_postcode(&self, word: &str) -> bool {
        word.bytes().all(|byte| byte.is_ascii_digit()) && self.postcode_digits == Some(word.len())
    }

    /// May so many digits be a house number?
    pub(crate) fn is_number(&self, digits: usize) -> bool {
        (1..=self.number_digits).contains(&digits)
    }

    pub(super) fn is_article(&self, word: &str) -> bool {
        self.any(|language| language.articles.contains(&word))
    }

    /// A word without its abbreviation.
    pub(super) fn whole(&self, word: &str) -> String {
        let mut groups = self.languages.iter().flat_map(|language| language.same);
        if let Some(group) = groups.find(|group| group.contains(&word)) {
            return group[0].to_owned();
        }
        let mut endings = self.languages.iter().flat_map(|language| language.endings);
        let ending = endings.find_map(|(short, long)| {
            let stem = word.strip_suffix(short)?;
            (stem.chars().count() >= 3).then(|| format!("{stem}{long}"))
        });
        ending.unwrap_or_else(|| word.to_owned())
    }

    /// Is the second word written in one with the first?
    pub(super) fn is_glued(&self, first: &str, second: &str) -> bool {
        !first.starts_with(|c: char| c.is_ascii_digit())
            && self.any(|language| language.glued.contains(&second))
    }

    pub(super) fn without_possessives<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.any(|language| language.possessive) && text.contains(['\'', '’']) {
            text.replace("'s", "s").replace("’s", "s").into()
        } else {
            text.into()
        }
    }

    fn any(&self, is: impl Fn(&Language) -> bool) -> bool {
        self.languages.iter().any(|language| is(language))
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> &'static [&'static str] {
        self.names
    }

    #[cfg(test)]
    pub(super) fn languages() -> [(&'static Self, &'static Language); 6] {
        let of = |code| Self::of(code);
        [
            (of("FR"), &FRENCH),
            (of("GB"), &ENGLISH),
            (of("DE"), &GERMAN),
            (of("NL"), &DUTCH),
            (of("ES"), &SPANISH),
            (of("IT"), &ITALIAN),
        ]
    }
}
