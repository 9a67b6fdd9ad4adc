//! Adds noise to an address: case, missing accents, abbreviations, word order, additional and
//! missing parts, and spelling errors.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{random::Random, region::Address};

/// A noisy address.
pub(crate) struct NoisyAddress {
    pub(crate) text: String,
    /// Whether it has no town and no postcode, so that the search needs `Query::near`.
    pub(crate) needs_near: bool,
}

const ABBREVIATIONS: &[(&str, &[&str])] = &[
    ("Rue", &["r.", "R"]),
    ("Avenue", &["av", "av.", "ave"]),
    ("Boulevard", &["bd", "blvd", "Bld."]),
    ("Place", &["pl.", "pl"]),
    ("Impasse", &["imp."]),
    ("Allée", &["all."]),
    ("Chemin", &["che", "chem."]),
    ("Square", &["sq."]),
    ("Passage", &["pass."]),
    ("Docteur", &["Dr", "dr."]),
    ("Général", &["Gal", "gen."]),
    ("Maréchal", &["Mal"]),
    ("Président", &["Pdt"]),
    ("Professeur", &["Pr.", "prof."]),
];
const TEXTS_BEFORE: &[&str] = &[
    "Chez Mme Martin",
    "Appt 12",
    "Bâtiment C",
    "Café du Centre",
    "Bureau 204",
];
const TEXTS_AFTER: &[&str] = &[
    "3e étage",
    "bât. B",
    "porte 12",
    "escalier 2, 4e gauche",
    "code 1234A",
    "RDC",
    "appartement 7",
];

/// Keeps the town or the postcode of a street that several towns have.
pub(crate) fn add_noise(
    random: &mut Random,
    address: &Address,
    is_in_several_towns: bool,
) -> NoisyAddress {
    let mut street = address.street.clone();
    let mut town = address.town.clone();
    if random.percent(40) {
        street = abbreviated(random, &street);
    }
    if random.percent(30) {
        town = town.replace("Sainte-", "Ste ").replace("Saint-", "St ");
        street = street.replace("Saint-", "St-");
    }
    if random.percent(20) {
        street = street
            .replace(" de la ", " ")
            .replace(" du ", " ")
            .replace(" des ", " ");
        town = town.replace('-', " ");
    }
    if random.percent(35) {
        misspell(random, &mut street);
    } else if random.percent(20) {
        misspell(random, &mut town);
    }
    let number = match (address.suffix, random.below(3)) {
        ("", _) => address.number.to_string(),
        (suffix, 0) => format!("{}{suffix}", address.number),
        (suffix, 1) => format!("{} {suffix}", address.number),
        (suffix, _) => format!("{} {}", address.number, suffix.to_uppercase()),
    };
    let separator = random.one_of(&[", ", " "]);
    let house = match random.below(10) {
        0 => format!("{street} {number}"),
        1 => format!("{street}, {number}"),
        2 => format!("{number}, {street}"),
        _ => format!("{number} {street}"),
    };
    let needs_near = !is_in_several_towns && random.percent(10);
    let place = match random.below(4) {
        _ if needs_near => String::new(),
        0 => town.clone(),
        1 => address.postcode.clone(),
        _ => format!("{} {town}", address.postcode),
    };
    let mut text = house;
    if random.percent(15) {
        text = format!("{}, {text}", random.one_of(TEXTS_BEFORE));
    }
    if random.percent(20) {
        text = format!("{text}, {}", random.one_of(TEXTS_AFTER));
        text = format!("{text}, {place}");
    } else if !place.is_empty() {
        text = format!("{text}{separator}{place}");
    }
    if random.percent(15) && !place.is_empty() {
        text.push_str(random.one_of(&[", France", " FRANCE", ", FR"]));
    }
    if random.percent(40) {
        text = text.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    }
    text = match random.below(4) {
        0 => text.to_uppercase(),
        1 => text.to_lowercase(),
        _ => text,
    };
    NoisyAddress { text, needs_near }
}

fn abbreviated(random: &mut Random, street: &str) -> String {
    let words: Vec<_> = street
        .split(' ')
        .map(|word| {
            let short = ABBREVIATIONS.iter().find(|(long, _)| *long == word);
            short.map_or(word, |(_, short)| random.one_of(short))
        })
        .collect();
    words.join(" ")
}

/// Removes, doubles, replaces or swaps a letter in one of the longer words.
fn misspell(random: &mut Random, text: &mut String) {
    let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
    let long: Vec<_> = (0..words.len())
        .filter(|word| words[*word].chars().count() >= 5 && !words[*word].contains(['-', '\'']))
        .collect();
    if long.is_empty() {
        return;
    }
    let chosen = random.one_of(&long);
    let mut words = words;
    let mut letters: Vec<char> = words[chosen].chars().collect();
    let position = 1 + random.below(letters.len() - 2);
    match random.below(4) {
        0 => {
            letters.remove(position);
        }
        1 => letters.insert(position, letters[position]),
        2 => letters[position] = random.one_of(&['a', 'e', 'i', 'n', 'r', 's', 't']),
        _ => letters.swap(position, position + 1),
    }
    words[chosen] = letters.into_iter().collect();
    *text = words.join(" ");
}
