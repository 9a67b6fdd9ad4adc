//! Finding what a text means among the addresses of a gazetteer.

use std::{collections::BTreeSet, ops::Range};

use super::{Gazetteer, House};
use crate::{
    domain::address::LatLng,
    geocoding::{Answer, Found, MAX_CANDIDATES, Missing, Precision, Query, Unclear},
    routing::great_circle_meters,
};

/// A street in a text: the words that name it, and where it may be.
struct StreetWords<'a> {
    words: Range<usize>,
    streets: &'a [usize],
}

/// What of a text is not the street.
#[derive(Default)]
struct Details {
    /// More than one for `24-26`; the first that exists counts, so the nearest comes first.
    houses: Vec<House>,
    postal_code: Option<String>,
    locality: Option<usize>,
    /// After the street, and without any meaning known here.
    unknown: Vec<String>,
}

/// Words of a text that are looked at: the longest real addresses have about twenty.
const MAX_WORDS: usize = 40;
/// Streets of that name farther away are not in the area of who asks.
const AREA_METERS: f64 = 30_000.0;

impl Gazetteer {
    /// Looks an address up.
    pub fn search(&self, query: &Query) -> Answer {
        if query
            .country
            .as_ref()
            .is_some_and(|c| !c.eq_ignore_ascii_case(self.country))
        {
            return Answer::NotFound;
        }
        let mut words = self.language.words(&query.text);
        words.truncate(MAX_WORDS);
        while words
            .last()
            .is_some_and(|word| self.language.is_country(word))
        {
            words.pop();
        }

        let Some(street) = self.find_street(&words) else {
            return self.search_locality(&words, query.demand);
        };
        let details = self.details(&words, &street.words);
        let (mut streets, fits) = self.fitting(street.streets, &details);
        if let Some(near) = query.near {
            self.keep_area(&mut streets, near);
        }
        let found: Vec<_> = streets
            .iter()
            .map(|street| self.found(*street, &details.houses))
            .collect();
        if !fits {
            return unclear(self.misfit(&details), found);
        }
        judge(found, &details, query.demand)
    }

    /// The longest run of words that names a street.
    fn find_street(&self, words: &[String]) -> Option<StreetWords<'_>> {
        runs(words.len()).find_map(|run| {
            let streets = self.streets_by_name.get(&words[run.clone()].join(" "))?;
            Some(StreetWords {
                words: run,
                streets,
            })
        })
    }

    /// The longest run of words that names a town.
    fn find_locality(&self, words: &[String]) -> Option<(Range<usize>, usize)> {
        runs(words.len()).find_map(|run| {
            let locality = self.localities_by_name.get(&words[run.clone()].join(" "))?;
            Some((run, *locality))
        })
    }

    fn search_locality(&self, words: &[String], demand: Precision) -> Answer {
        let postal_code = words.iter().find(|word| is_postal_code(word));
        let named = self.find_locality(words).map(|(_, locality)| locality);
        let Some(locality) = named.or_else(|| {
            let postal_code = postal_code?;
            self.localities
                .iter()
                .position(|locality| locality.postal_codes.contains(postal_code))
        }) else {
            return Answer::NotFound;
        };
        let locality = &self.localities[locality];
        let found = Found {
            formatted: locality.name.clone(),
            postal_code: postal_code
                .filter(|code| locality.postal_codes.contains(*code))
                .cloned(),
            locality: Some(locality.name.clone()),
            country: Some(self.country.to_owned()),
            lat_lng: locality.lat_lng,
            precision: Precision::Locality,
        };
        if found.precision.meets(demand) {
            Answer::Found(found)
        } else {
            unclear(Missing::Street, vec![found])
        }
    }

    fn details(&self, words: &[String], street: &Range<usize>) -> Details {
        let (before, after) = (&words[..street.start], &words[street.end..]);
        let mut details = Details {
            houses: House::before(before, self.language),
            ..Details::default()
        };
        let mut after = after.to_vec();
        if details.houses.is_empty()
            && let Some((house, length)) = House::after(&after, self.language)
        {
            details.houses.push(house);
            after.drain(..length);
        }
        if let Some((run, locality)) = self.find_locality(&after) {
            details.locality = Some(locality);
            after.drain(run);
        } else if let Some((_, locality)) = self.find_locality(before) {
            details.locality = Some(locality);
        }
        details.postal_code = after
            .iter()
            .chain(before)
            .find(|word| is_postal_code(word))
            .cloned();
        // Behind a floor or a door number comes nothing about the town.
        details.unknown = after
            .into_iter()
            .take_while(|word| !self.language.is_indoors(word))
            .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        details
    }
    /// The streets in the town that was named; all of them, and false, if none is there or if
    /// words remain that may name another town.
    fn fitting(&self, streets: &[usize], details: &Details) -> (Vec<usize>, bool) {
        if details.locality.is_none() && details.postal_code.is_none() {
            return (streets.to_vec(), details.unknown.is_empty());
        }
        let fitting: Vec<_> = streets
            .iter()
            .copied()
            .filter(|street| self.is_in(*street, details))
            .collect();
        if fitting.is_empty() {
            (streets.to_vec(), false)
        } else {
            (fitting, true)
        }
    }

    fn is_in(&self, street: usize, details: &Details) -> bool {
        let street_locality = self.streets[street].locality;
        let named = details.locality == Some(street_locality);
        let right_code = details.postal_code.as_ref().is_none_or(|code| {
            let codes = &self.localities[street_locality].postal_codes;
            // People write 75000 or a neighbour's code beside the right town.
            codes.contains(code)
                || (named && codes.iter().any(|known| known.get(..2) == code.get(..2)))
        });
        right_code && (named || details.locality.is_none())
    }

    /// Why no street fits.
    fn misfit(&self, details: &Details) -> Missing {
        let locality = details
            .locality
            .map(|locality| self.localities[locality].name.clone());
        match (&details.postal_code, locality) {
            (None, None) => Missing::Words(details.unknown.join(" ")),
            (code, locality) => {
                let place: Vec<_> = code.iter().cloned().chain(locality).collect();
                Missing::Elsewhere(place.join(" "))
            }
        }
    }

    /// Keeps the streets near a point, if any is.
    fn keep_area(&self, streets: &mut Vec<usize>, near: LatLng) {
        let is_near = |street: &usize| {
            let mut houses = self.streets[*street].houses.values();
            houses.any(|house| great_circle_meters(house.lat_lng, near) <= AREA_METERS)
        };
        if streets.iter().any(is_near) {
            streets.retain(is_near);
        }
    }

    /// The first of some houses that a street has, or the street.
    fn found(&self, street: usize, houses: &[House]) -> Found {
        let street = &self.streets[street];
        let locality = &self.localities[street.locality].name;
        let found = |formatted, postal_code, lat_lng, precision| Found {
            formatted,
            postal_code,
            locality: Some(locality.clone()),
            country: Some(self.country.to_owned()),
            lat_lng,
            precision,
        };
        if let Some((house, place, precision)) = houses.iter().find_map(|house| street.house(house))
        {
            return found(
                format!("{house} {}, {} {locality}", street.name, place.postal_code),
                Some(place.postal_code.clone()),
                place.lat_lng,
                precision,
            );
        }
        let codes: BTreeSet<_> = street
            .houses
            .values()
            .map(|place| &place.postal_code)
            .collect();
        let middle = street.houses.values().nth(street.houses.len() / 2);
        found(
            format!("{}, {locality}", street.name),
            codes
                .first()
                .filter(|_| codes.len() == 1)
                .map(|code| (*code).clone()),
            middle.map_or(self.localities[street.locality].lat_lng, |place| {
                place.lat_lng
            }),
            Precision::Street,
        )
    }
}

/// The one place that is exact enough, or what is missing.
fn judge(found: Vec<Found>, details: &Details, demand: Precision) -> Answer {
    let best = found.iter().map(|found| found.precision).min();
    let mut found: Vec<_> = found
        .into_iter()
        .filter(|found| Some(found.precision) == best)
        .collect();
    if found.len() > 1 {
        return unclear(Missing::Locality, found);
    }
    match found.pop() {
        Some(found) if found.precision.meets(demand) => Answer::Found(found),
        Some(found) => {
            let number = details.houses.first().map(House::to_string);
            unclear(Missing::HouseNumber(number), vec![found])
        }
        None => Answer::NotFound,
    }
}

fn unclear(missing: Missing, mut candidates: Vec<Found>) -> Answer {
    candidates.sort_by_key(|found| found.precision);
    candidates.truncate(MAX_CANDIDATES);
    Answer::Unclear(Unclear {
        missing,
        candidates,
    })
}

/// All runs of neighbours among so many words, the longest first.
fn runs(words: usize) -> impl Iterator<Item = Range<usize>> {
    (1..=words)
        .rev()
        .flat_map(move |length| (0..=words - length).map(move |start| start..start + length))
}

fn is_postal_code(word: &str) -> bool {
    word.len() == 5 && word.bytes().all(|byte| byte.is_ascii_digit())
}
