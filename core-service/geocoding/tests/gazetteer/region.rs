//! Generates a plausible region of French towns, and streets that it does not have. Deterministic
//! for a seed.

use std::{collections::HashSet, fmt::Write};

use crate::random::Random;

/// An address of the region.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) number: u32,
    pub(crate) suffix: &'static str,
    pub(crate) street: String,
    pub(crate) postcode: String,
    pub(crate) town: String,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
}

pub(crate) struct Region {
    pub(crate) addresses: Vec<Address>,
    /// Town and street in lower case.
    streets: HashSet<(String, String)>,
    surnames: Vec<String>,
}

const TOWNS: &[&str] = &[
    "Bellerive-sur-Aure",
    "Saint-Amand-les-Prés",
    "Grandville",
    "Le Mesnil",
    "Courbenoy",
    "Saint-Denis-la-Forêt",
    "Vaucresson-le-Haut",
    "Montfleury",
    "La Ferté-Marais",
    "Champlieu",
    "Rochebrune",
    "Villeneuve-sur-Orge",
    "Sainte-Colombe",
    "Les Ormes",
    "Brémont",
    "Pontarlac",
    "Aigremont",
    "Neuvy-le-Roi",
    "Fontenay-aux-Bois",
    "Clairval",
];
/// With their weights in the random choice.
const STREET_TYPES: &[(&str, u32)] = &[
    ("Rue", 60),
    ("Avenue", 10),
    ("Impasse", 8),
    ("Allée", 8),
    ("Place", 4),
    ("Boulevard", 4),
    ("Chemin", 6),
    ("Square", 2),
    ("Quai", 1),
    ("Passage", 2),
];
const FIRST_NAMES: &[&str] = &[
    "Jean",
    "Pierre",
    "Paul",
    "Émile",
    "Louis",
    "Jules",
    "Marie",
    "Anne",
    "Marcel",
    "Henri",
    "Albert",
    "Georges",
    "Lucie",
    "Simone",
    "François",
    "René",
    "André",
    "Édouard",
    "Gustave",
    "Victor",
    "Camille",
    "Irène",
    "Léon",
    "Raymond",
    "Suzanne",
    "Théodore",
    "Hélène",
    "Joséphine",
    "Maurice",
    "Gabriel",
];
const TITLES: &[&str] = &[
    "du Docteur",
    "du Général",
    "du Maréchal",
    "du Président",
    "du Professeur",
    "de l'Abbé",
];
const PLACES: &[&str] = &[
    "de la Gare",
    "de l'Église",
    "de la Mairie",
    "du Moulin",
    "des Écoles",
    "du Château",
    "de la Fontaine",
    "des Lilas",
    "des Tilleuls",
    "du Stade",
    "de la République",
    "de la Liberté",
    "du 8 Mai 1945",
    "du 11 Novembre 1918",
    "des Champs",
    "du Marché",
    "de la Forêt",
    "de Paris",
    "Neuve",
    "Haute",
];
const NATURE: &[&str] = &[
    "Acacias",
    "Bouleaux",
    "Bruyères",
    "Cerisiers",
    "Châtaigniers",
    "Chênes",
    "Coquelicots",
    "Érables",
    "Fougères",
    "Genêts",
    "Glycines",
    "Hirondelles",
    "Jonquilles",
    "Marronniers",
    "Mésanges",
    "Mimosas",
    "Noyers",
    "Œillets",
    "Peupliers",
    "Platanes",
    "Primevères",
    "Rossignols",
    "Sapins",
    "Vignes",
    "Violettes",
];
const SAINTS: &[&str] = &[
    "Antoine",
    "Benoît",
    "Christophe",
    "Étienne",
    "Germain",
    "Honoré",
    "Jacques",
    "Lazare",
    "Martin",
    "Michel",
    "Nicolas",
    "Roch",
    "Sébastien",
    "Vincent",
];
const ONSETS: &[&str] = &[
    "B", "Bl", "Br", "C", "Ch", "Cl", "D", "Dr", "F", "Fl", "G", "Gr", "J", "L", "M", "N", "P",
    "Pr", "R", "S", "T", "Tr", "V",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ai", "au", "é", "ou", "oi"];
const MIDDLES: &[&str] = &[
    "b", "ch", "d", "g", "l", "ll", "m", "n", "nn", "r", "rd", "rm", "rt", "ss", "t", "tt", "v",
    "nt", "mp", "st",
];
const ENDS: &[&str] = &[
    "ac", "ain", "ard", "aud", "eau", "el", "er", "et", "ier", "in", "on", "ot", "oux", "y", "ois",
    "elle", "ette",
];

impl Region {
    /// Generates about this many addresses.
    pub(crate) fn generate(random: &mut Random, addresses: usize) -> Self {
        let surnames = (0..addresses / 100 + 50).map(|_| surname(random)).collect();
        let mut region = Self {
            addresses: Vec::with_capacity(addresses + 200),
            streets: HashSet::new(),
            surnames,
        };
        let per_town = addresses / TOWNS.len() + 1;
        for town in 0..TOWNS.len() {
            let end = (town + 1) * per_town;
            for place in PLACES {
                region.add_street(random, town, &format!("Rue {place}"));
            }
            while region.addresses.len() < end.min(addresses) {
                let name = region.name(random);
                region.add_street(random, town, &name);
            }
        }
        region
    }

    /// Formats as a CSV file of the French address database (BAN).
    pub(crate) fn to_csv(&self) -> String {
        let mut csv =
            String::from("id;numero;rep;nom_voie;code_postal;code_insee;nom_commune;lon;lat\n");
        for (id, address) in self.addresses.iter().enumerate() {
            let Address {
                number,
                suffix,
                street,
                postcode,
                town,
                latitude,
                longitude,
            } = address;
            writeln!(
                csv,
                "{id};{number};{suffix};{street};{postcode};;{town};{longitude:.6};{latitude:.6}"
            )
            .unwrap();
        }
        csv
    }

    /// Whether several towns have a street of this name.
    pub(crate) fn is_in_several_towns(&self, street: &str) -> bool {
        let street = street.to_lowercase();
        let towns = TOWNS.iter().filter(|town| {
            self.streets
                .contains(&(town.to_lowercase(), street.clone()))
        });
        towns.count() > 1
    }

    /// An address in a street that the town does not have.
    pub(crate) fn unknown_street(&self, random: &mut Random) -> Address {
        let template = self.addresses[random.below(self.addresses.len())].clone();
        loop {
            let street = self.name(random);
            let exists = |street: &str| {
                self.streets
                    .contains(&(template.town.to_lowercase(), street.to_lowercase()))
            };
            if !exists(&street) {
                return Address { street, ..template };
            }
        }
    }

    fn name(&self, random: &mut Random) -> String {
        let total: u32 = STREET_TYPES.iter().map(|(_, weight)| weight).sum();
        let mut remaining = u32::try_from(random.below(total as usize)).unwrap();
        let chosen = STREET_TYPES.iter().find(|(_, weight)| {
            let is_chosen = remaining < *weight;
            remaining = remaining.saturating_sub(*weight);
            is_chosen
        });
        let kind = chosen.unwrap().0;
        let surname = &self.surnames[random.below(self.surnames.len())];
        let first_name = random.one_of(FIRST_NAMES);
        match random.below(100) {
            0..55 => format!("{kind} {first_name} {surname}"),
            55..65 => format!("{kind} {} {surname}", random.one_of(TITLES)),
            65..75 => format!("{kind} {surname}"),
            75..85 => format!("{kind} des {}", random.one_of(NATURE)),
            85..92 => format!("{kind} Saint-{}", random.one_of(SAINTS)),
            92..96 => format!(
                "{kind} {first_name}-{} {surname}",
                random.one_of(FIRST_NAMES)
            ),
            _ => format!("{kind} {}", random.one_of(PLACES)),
        }
    }

    fn add_street(&mut self, random: &mut Random, town: usize, street: &str) {
        if !self
            .streets
            .insert((TOWNS[town].to_lowercase(), street.to_lowercase()))
        {
            return;
        }
        // Towns form a grid of five kilometres.
        let degrees =
            |index: usize, start: f64| start + 0.05 * f64::from(u32::try_from(index).unwrap());
        let latitude = degrees(town / 5, 48.4) + 0.04 * random.fraction();
        let longitude = degrees(town % 5, 1.9) + 0.04 * random.fraction();
        let direction = random.fraction() * std::f64::consts::TAU;
        let length = u32::try_from(8 + random.below(80)).unwrap();
        let postcode = format!("77{town:02}{}", random.below(2) * 5);
        for number in 1..=length {
            if random.below(100) < 8 {
                continue;
            }
            let suffixes: &[&str] = match random.below(100) {
                0..3 => &["", "bis"],
                3 => &["", "bis", "ter"],
                4 => &["", "A", "B"],
                _ => &[""],
            };
            // Odd and even numbers on opposite sides, about ten metres apart.
            let along = f64::from(number) * 0.000_05;
            let across = if number % 2 == 0 { 0.000_1 } else { -0.000_1 };
            for (index, suffix) in suffixes.iter().enumerate() {
                let along = along + 0.000_01 * f64::from(u32::try_from(index).unwrap());
                self.addresses.push(Address {
                    number,
                    suffix,
                    street: street.to_owned(),
                    postcode: postcode.clone(),
                    town: TOWNS[town].to_owned(),
                    latitude: latitude + along * direction.sin() + across * direction.cos(),
                    longitude: longitude + along * direction.cos() - across * direction.sin(),
                });
            }
        }
    }
}

fn surname(random: &mut Random) -> String {
    let mut name = format!("{}{}", random.one_of(ONSETS), random.one_of(VOWELS));
    if random.below(2) == 0 {
        name.push_str(random.one_of(MIDDLES));
        name.push_str(random.one_of(VOWELS));
    }
    name.push_str(random.one_of(MIDDLES));
    name.push_str(random.one_of(ENDS));
    name
}
