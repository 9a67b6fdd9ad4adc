//! Finding what a text means among the addresses of an index.

mod naming;
mod numbering;
mod placing;
mod text;

use std::collections::BTreeMap;

use super::{
    index::{Index, Lookup, Street},
    place::PlaceToken,
    point,
};
use crate::{
    domain::address::LatLng,
    geocoding::{Answer, Found, Missing, Precision, Query, Reason, Role, Unclear, words::Country},
    routing::great_circle_meters,
};
use naming::{Naming, likeness};
use placing::Placed;
use text::{Meanings, Slips, Text};

/// Streets of that name farther away are not in the area of who asks.
const AREA_METERS: f64 = 30_000.0;
/// Streets that are looked at closely.
const MOST_STREETS: u32 = 48;
/// Streets with less of their name in the text are not similar.
const SIMILAR: f64 = 0.5;
/// No town was named: the one in the area is meant.
const BY_AREA: f64 = 0.9;
/// No town was named, and none in the area has such a street.
const FAR_AWAY: f64 = 0.7;
/// The number is not known, its neighbours are.
const INTERPOLATED: f64 = 0.9;

/// Looks an address up in one country.
pub(super) fn search(index: &Index, query: &Query, country: &str) -> rusqlite::Result<Answer> {
    let lookup = index.lookup();
    let search = Search {
        text: Text::read(&query.text, Country::of(country), index, &lookup)?,
        index,
        lookup,
        query,
        country,
    };
    search.run()
}

struct Search<'a> {
    text: Text,
    index: &'a Index,
    lookup: Lookup<'a>,
    query: &'a Query,
    /// ISO 3166-1 alpha-2.
    country: &'a str,
}

/// Where streets are looked for, the likeliest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In the towns and at the postcodes that are named.
    Named,
    /// Near who asks.
    Area,
    Anywhere,
}

/// What was found of a text.
#[derive(Default)]
struct Streets {
    /// Named, and nothing speaks against them.
    meant: Vec<Placed>,
    /// Named, but elsewhere.
    elsewhere: Vec<Placed>,
    /// Of a similar name, with how similar it is.
    similar: Vec<(f64, Street)>,
}

impl Search<'_> {
    fn run(&self) -> rusqlite::Result<Answer> {
        let mut passes = Vec::new();
        let mut elsewhere = Vec::new();
        let mut similar = Vec::new();
        for scope in self.scopes() {
            for (pass, slips) in [Slips::Nowhere, Slips::Unknown, Slips::Anywhere]
                .into_iter()
                .enumerate()
            {
                if passes.len() == pass {
                    passes.push(self.text.meanings(self.index, slips));
                }
                let meanings = &passes[pass];
                // Where the place is known, a similar name elsewhere is no hint.
                let is_idle = scope != Scope::Named && self.is_placed();
                if pass > 0 && (is_idle || !meanings.are_misspelt()) {
                    continue;
                }
                let streets = self.streets(meanings, scope)?;
                if !streets.meant.is_empty() {
                    let everyone: Vec<_> = streets.elsewhere.into_iter().chain(elsewhere).collect();
                    return self.judge(streets.meant, &everyone, scope);
                }
                elsewhere.extend(streets.elsewhere);
                if scope == Scope::Named {
                    similar.extend(streets.similar);
                }
            }
        }
        if !elsewhere.is_empty() {
            return self.tell_elsewhere(elsewhere);
        }
        self.town(similar)
    }

    fn scopes(&self) -> Vec<Scope> {
        let mut scopes = Vec::new();
        if self.is_placed() {
            scopes.push(Scope::Named);
        }
        if self.query.near.is_some() {
            scopes.push(Scope::Area);
        }
        scopes.push(Scope::Anywhere);
        scopes
    }

    /// Is a town named, or a postcode that a town has?
    fn is_placed(&self) -> bool {
        let mut postcodes = self.text.postcodes.iter();
        !self.text.towns.is_empty() || postcodes.any(|postcode| !postcode.localities.is_empty())
    }

    /// The streets that a text names or nearly names.
    fn streets(&self, meanings: &Meanings, scope: Scope) -> rusqlite::Result<Streets> {
        let mut streets = Streets::default();
        let mut best = BTreeMap::<i64, (Naming, Street)>::new();
        for expression in self.expressions(meanings, scope) {
            for street in self.lookup.streets(&expression, MOST_STREETS)? {
                let Some(naming) = Naming::find(&street.words, &self.text, meanings) else {
                    let likeness = likeness(&street.words, &self.text, meanings);
                    if likeness >= SIMILAR {
                        streets.similar.push((likeness, street));
                    }
                    continue;
                };
                let known = best.get(&street.id);
                if known.is_none_or(|(known, _)| {
                    (naming.words.len(), naming.confidence) > (known.words.len(), known.confidence)
                }) {
                    best.insert(street.id, (naming, street));
                }
            }
        }
        // `Lyon` is no short form of `Rue de Lyon` beside `rue de la Paix`.
        if best.values().any(|(naming, _)| naming.has_kind) {
            best.retain(|_, (naming, _)| naming.has_kind);
        }
        // `Rue de Paris` is not meant where `Rue de Paris à Lille` is a street.
        let longest = best
            .values()
            .map(|(naming, _)| naming.words.clone())
            .max_by_key(ExactSizeIterator::len);
        for (naming, street) in best.into_values() {
            let is_part = longest.as_ref().is_some_and(|longest| {
                naming.words != *longest
                    && longest.start <= naming.words.start
                    && naming.words.end <= longest.end
            });
            if is_part {
                continue;
            }
            match Placed::new(&self.text, &self.lookup, street, naming)? {
                Some(placed) if placed.against.is_none() => streets.meant.push(placed),
                Some(placed) => streets.elsewhere.push(placed),
                None => {}
            }
        }
        Ok(streets)
    }

    /// What the full-text index is asked for: streets that have any of the words, those that have
    /// the most and the rarest first. Where there are many words, for each part by itself.
    fn expressions(&self, meanings: &Meanings, scope: Scope) -> Vec<String> {
        const MANY: usize = 8;
        let Some(place) = self.place_expression(scope) else {
            return Vec::new();
        };
        let words = &self.text.words;
        let is_useful = |position: &usize| !meanings.0[*position].is_empty();
        let (kinds, names): (Vec<_>, Vec<_>) = (0..words.len())
            .filter(is_useful)
            .partition(|position| self.text.country.is_kind(&words[*position].text));
        // `Rue` alone is every street: only where nothing else can be its name, in a known place.
        let is_kind_alone = scope != Scope::Anywhere
            && (0..words.len()).all(|position| {
                kinds.contains(&position)
                    || words[position].begins_with_digit()
                    || self.text.is_place(position)
            });
        let names = if is_kind_alone { kinds } else { names };
        let parts: Vec<Vec<usize>> = if names.len() <= MANY {
            vec![names]
        } else {
            names
                .chunk_by(|a, b| words[*a].part == words[*b].part)
                .map(<[usize]>::to_vec)
                .collect()
        };
        parts
            .iter()
            .filter_map(|part| {
                let mut known: Vec<_> = part
                    .iter()
                    .flat_map(|position| meanings.0[*position].keys())
                    .collect();
                known.sort_unstable();
                known.dedup();
                let words = any_of(known.into_iter().map(String::as_str))?;
                Some(match place.as_str() {
                    "" => format!("words : {words}"),
                    place => format!("words : {words} AND {place}"),
                })
            })
            .collect()
    }

    /// None if there is nothing to be found; empty for everywhere.
    fn place_expression(&self, scope: Scope) -> Option<String> {
        let places: Vec<PlaceToken> = match scope {
            Scope::Anywhere if self.index.countries.len() > 1 => {
                vec![PlaceToken::Country(self.country.to_owned())]
            }
            Scope::Anywhere => return Some(String::new()),
            Scope::Area => point::cells_within(self.query.near?, AREA_METERS)
                .into_iter()
                .map(PlaceToken::Cell)
                .collect(),
            Scope::Named => {
                let towns = self.text.towns.iter().flat_map(|town| &town.localities);
                let postcodes = self
                    .text
                    .postcodes
                    .iter()
                    .filter(|postcode| !postcode.localities.is_empty());
                towns
                    .map(|locality| PlaceToken::Locality(locality.id))
                    .chain(postcodes.map(|postcode| PlaceToken::Postcode(postcode.code.clone())))
                    .collect()
            }
        };
        let places: Vec<_> = places.iter().filter_map(PlaceToken::text).collect();
        any_of(places.iter().map(String::as_str)).map(|places| format!("place : {places}"))
    }

    /// The one place that is exact enough, or what is missing.
    fn judge(
        &self,
        mut meant: Vec<Placed>,
        elsewhere: &[Placed],
        scope: Scope,
    ) -> rusqlite::Result<Answer> {
        let surest =
            meant.iter().map(rank).fold(
                (false, 0.0),
                |best: (bool, f64), rank| {
                    if rank > best { rank } else { best }
                },
            );
        meant.retain(|placed| rank(placed) == surest);
        if scope == Scope::Anywhere {
            self.keep_area(&mut meant);
        }

        let mut found = Vec::new();
        for placed in &meant {
            found.extend(self.found(placed, scope)?);
        }
        let best = found.iter().map(|found| found.precision).min();
        found.retain(|found| Some(found.precision) == best);
        // The postcode is that of another town with this very address.
        if let Some(foreign) = meant
            .first()
            .and_then(|placed| placed.foreign_postcode.as_ref())
        {
            for other in elsewhere
                .iter()
                .filter(|other| other.postcode.as_ref() == Some(foreign))
            {
                let others = self.found(other, scope)?;
                found.extend(
                    others
                        .into_iter()
                        .filter(|other| Some(other.precision) == best),
                );
            }
        }
        if found.len() > 1 {
            return Ok(Answer::Unclear(Unclear::new(Missing::Locality, found)));
        }
        Ok(match found.pop() {
            Some(found) if found.precision.meets(self.query.demand) => Answer::Found(found),
            Some(found) => {
                let number = meant.first().and_then(|placed| placed.houses.first());
                Answer::Unclear(Unclear::new(
                    Missing::HouseNumber(number.map(ToString::to_string)),
                    vec![found],
                ))
            }
            None => Answer::NotFound,
        })
    }

    fn tell_elsewhere(&self, mut elsewhere: Vec<Placed>) -> rusqlite::Result<Answer> {
        elsewhere.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        self.keep_area(&mut elsewhere);
        let mut found: Vec<Found> = Vec::new();
        for placed in &elsewhere {
            for place in self.found(placed, Scope::Anywhere)? {
                if found.iter().all(|known| known.formatted != place.formatted) {
                    found.push(place);
                }
            }
        }
        found.sort_by_key(|found| found.precision);
        let missing = elsewhere.into_iter().find_map(|placed| placed.against);
        Ok(Answer::Unclear(Unclear::new(
            missing.unwrap_or(Missing::Locality),
            found,
        )))
    }

    /// Keeps the streets near who asks, if any is.
    fn keep_area(&self, placed: &mut Vec<Placed>) {
        let Some(near) = self.query.near else {
            return;
        };
        let is_near =
            |placed: &Placed| great_circle_meters(placed.street.point, near) <= AREA_METERS;
        if placed.iter().any(is_near) {
            placed.retain(is_near);
        }
    }

    /// The first of the houses that the street has, or the street.
    fn found(&self, placed: &Placed, scope: Scope) -> rusqlite::Result<Vec<Found>> {
        let (street, locality) = (&placed.street, &placed.locality);
        let mut confidence = placed.confidence;
        let mut reasons = placed.reasons.clone();
        if !placed.is_named && self.query.near.is_some() {
            if scope == Scope::Area {
                confidence *= BY_AREA;
                reasons.push(Reason::Area);
            } else {
                confidence *= FAR_AWAY;
            }
        }
        let found = |number: &str, postcode: &str, point: LatLng, precision| Found {
            formatted: self.text.country.format(
                number,
                &street.name,
                if number.is_empty() { "" } else { postcode },
                &locality.name,
            ),
            postal_code: Some(postcode.to_owned()).filter(|postcode| !postcode.is_empty()),
            locality: Some(locality.name.clone()),
            country: Some(locality.country.clone()),
            lat_lng: point,
            precision,
            confidence,
            reasons: reasons.clone(),
        };
        // Of `24-26`, the one that exists.
        let mut nearly = None;
        for house in &placed.houses {
            let numbered =
                numbering::find(&self.lookup, street, house, placed.postcode.as_deref())?;
            let Some(first) = numbered.first() else {
                continue;
            };
            let is_known = first.precision == Precision::House;
            let houses = numbered.into_iter().map(|house| {
                let mut found = found(
                    &house.house.to_string(),
                    &house.postcode,
                    house.point,
                    house.precision,
                );
                if house.precision > Precision::House {
                    found.confidence *= INTERPOLATED;
                }
                found.reasons.extend(house.reason);
                found
            });
            if is_known {
                return Ok(houses.collect());
            }
            nearly.get_or_insert(houses.collect());
        }
        if let Some(nearly) = nearly {
            return Ok(nearly);
        }
        Ok(vec![found(
            "",
            &street.postcode,
            street.point,
            Precision::Street,
        )])
    }

    /// The town that is named, where no street is.
    fn town(&self, mut similar: Vec<(f64, Street)>) -> rusqlite::Result<Answer> {
        let postcode = self
            .text
            .postcodes
            .iter()
            .find(|postcode| !postcode.localities.is_empty());
        let named = self.text.towns.iter().max_by_key(|town| town.words.len());
        let has_postcode =
            |id: i64| postcode.is_some_and(|postcode| postcode.localities.contains(&id));
        let locality = match (named, postcode) {
            (Some(town), _) => {
                let fitting = town
                    .localities
                    .iter()
                    .find(|locality| has_postcode(locality.id));
                fitting.or(town.localities.first()).cloned()
            }
            (None, Some(postcode)) => self.lookup.locality(postcode.localities[0])?,
            (None, None) => None,
        };
        let Some(locality) = locality else {
            return Ok(Answer::NotFound);
        };
        let mut reasons = Vec::new();
        if let Some(town) = named {
            reasons.push(Reason::Read {
                words: self.text.written(town.words.clone()),
                role: Role::Locality,
            });
        }
        let found = Found {
            formatted: locality.name.clone(),
            postal_code: postcode
                .filter(|_| has_postcode(locality.id))
                .map(|postcode| self.text.written(postcode.words.clone())),
            locality: Some(locality.name.clone()),
            country: Some(locality.country.clone()),
            lat_lng: locality.point,
            precision: Precision::Locality,
            confidence: 1.0,
            reasons,
        };
        if found.precision.meets(self.query.demand) {
            return Ok(Answer::Found(found));
        }
        similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut candidates = vec![found];
        for (likeness, street) in similar {
            let formatted = self
                .text
                .country
                .format("", &street.name, "", &locality.name);
            if street.locality == locality.id
                && candidates.iter().all(|known| known.formatted != formatted)
            {
                candidates.push(Found {
                    formatted,
                    postal_code: Some(street.postcode).filter(|postcode| !postcode.is_empty()),
                    lat_lng: street.point,
                    precision: Precision::Street,
                    confidence: likeness / 2.0,
                    reasons: Vec::new(),
                    ..candidates[0].clone()
                });
            }
        }
        Ok(Answer::Unclear(Unclear::new(Missing::Street, candidates)))
    }
}

/// What is meant rather: what is named with its town, and then what is written right.
fn rank(placed: &Placed) -> (bool, f64) {
    (placed.is_named, placed.confidence)
}

fn any_of<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<_> = words.map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| format!("({})", words.join(" OR ")))
}
