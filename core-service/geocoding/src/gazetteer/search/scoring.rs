//! Selects the best of the matching streets, and finds the house in it or interpolates its point.

use domain::address::LatLng;

use super::{AREA_RADIUS_METERS, Scope, Search, match_locality::StreetCandidate};
use crate::{
    GeocodeMatch, GeocodeResult, Mismatch, PartialMatch, Precision,
    gazetteer::{
        house_number::HouseNumber,
        index::{KnownHouse, Lookup, Street, normalize_postcode},
    },
    geocoder::NEAREST_TOWN,
};

// Factors that reduce the confidence.
/// The factor for a street found with [`Scope::Area`], if the query has neither its town nor its postcode.
const NEAREST_TOWN_FACTOR: f64 = 0.9;
/// The factor for a street found with another scope.
const OUTSIDE_AREA_FACTOR: f64 = 0.7;
/// The factor for an interpolated house number.
const INTERPOLATED_FACTOR: f64 = 0.9;

/// Interpolates only between neighbours within this distance.
const MAX_INTERPOLATION_METERS: f64 = 400.0;
/// Points within this distance belong to one house.
const SAME_HOUSE_METERS: f64 = 300.0;

impl Search<'_> {
    /// The only address of the required precision, otherwise a partial match. The streets elsewhere
    /// match by name but not by place.
    pub(super) fn select(
        &self,
        mut matching: Vec<StreetCandidate<'_>>,
        elsewhere: &[StreetCandidate<'_>],
        scope: Scope,
    ) -> rusqlite::Result<GeocodeResult> {
        let better = |a, b| if b > a { b } else { a };
        let best_rank = matching.iter().map(rank).reduce(better);
        matching.retain(|candidate| Some(rank(candidate)) == best_rank);
        if scope == Scope::Anywhere {
            self.keep_nearby(&mut matching);
        }

        let mut found = Vec::new();
        for candidate in &matching {
            found.extend(self.addresses(candidate, scope)?);
        }
        let best = found.iter().map(|found| found.precision).min();
        found.retain(|found| Some(found.precision) == best);
        let first = matching.first();
        // If the query's postcode is that of another place, adds the same address there.
        if let Some(code) = first.and_then(|candidate| candidate.other_postcode.as_ref()) {
            let is_there = |other: &&StreetCandidate<'_>| {
                other
                    .postcode
                    .is_some_and(|postcode| postcode.code == *code)
            };
            for other in elsewhere.iter().filter(is_there) {
                let mut others = self.addresses(other, scope)?;
                others.retain(|other| Some(other.precision) == best);
                found.extend(others);
            }
        }
        let mismatch = match found.as_slice() {
            [] => return Ok(GeocodeResult::NotFound),
            [only] if only.precision.meets(self.query.required) => {
                return Ok(GeocodeResult::Found(only.clone()));
            }
            [_] => {
                let number = first.and_then(|candidate| candidate.houses.first());
                Mismatch::HouseNumber(number.map(|found| found.house.to_string()))
            }
            _ => Mismatch::AmbiguousTown,
        };
        Ok(PartialMatch::new(mismatch, found).into())
    }

    /// A partial match with the streets of other places.
    pub(super) fn partial_elsewhere(
        &self,
        mut elsewhere: Vec<StreetCandidate<'_>>,
    ) -> rusqlite::Result<GeocodeResult> {
        let is_contradiction = |candidate: &StreetCandidate<'_>| {
            matches!(candidate.mismatch, Some(Mismatch::Contradiction { .. }))
        };
        if elsewhere.iter().any(is_contradiction) {
            // Streets with another mismatch are irrelevant.
            elsewhere.retain(is_contradiction);
        }
        elsewhere.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        self.keep_nearby(&mut elsewhere);
        let mut found: Vec<GeocodeMatch> = Vec::new();
        for candidate in &elsewhere {
            for place in self.addresses(candidate, Scope::Anywhere)? {
                if found.iter().all(|known| known.formatted != place.formatted) {
                    found.push(place);
                }
            }
        }
        found.sort_by_key(|found| found.precision);
        let mismatch = elsewhere
            .into_iter()
            .find_map(|candidate| candidate.mismatch);
        Ok(PartialMatch::new(mismatch.unwrap_or(Mismatch::AmbiguousTown), found).into())
    }

    /// Keeps only the streets near [`crate::Query::near`], if there are any.
    fn keep_nearby(&self, candidates: &mut Vec<StreetCandidate<'_>>) {
        let Some(near) = self.query.near else {
            return;
        };
        let is_near = |candidate: &StreetCandidate<'_>| {
            candidate.street.point.distance_meters(near) <= AREA_RADIUS_METERS
        };
        if candidates.iter().any(is_near) {
            candidates.retain(is_near);
        }
    }

    /// The addresses of the first known house number, otherwise of the street.
    fn addresses(
        &self,
        candidate: &StreetCandidate<'_>,
        scope: Scope,
    ) -> rusqlite::Result<Vec<GeocodeMatch>> {
        let (street, locality) = (&candidate.street, &candidate.locality);
        let mut confidence = candidate.confidence;
        let mut reasons = candidate.reasons.clone();
        let is_assumed_near = !candidate.has_given_place && self.query.near.is_some();
        let is_in_nearest_town = is_assumed_near && scope == Scope::Area;
        if is_in_nearest_town {
            confidence *= NEAREST_TOWN_FACTOR;
            reasons.push(NEAREST_TOWN.to_owned());
        } else if is_assumed_near {
            confidence *= OUTSIDE_AREA_FACTOR;
        }
        let address = |number: &str, postcode: &str, point: LatLng, precision| GeocodeMatch {
            formatted: self.parsed.country.format(
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
            is_in_nearest_town,
            reasons: reasons.clone(),
        };
        // `24-26` has two numbers: an exact one takes precedence.
        let mut interpolated = None;
        for written in &candidate.houses {
            let postcode = candidate.postcode.map(|postcode| postcode.code.as_str());
            let matches = find_houses(&self.lookup, street, &written.house, postcode)?;
            let Some(first) = matches.first() else {
                continue;
            };
            let is_exact = first.precision == Precision::House;
            let houses = matches.into_iter().map(|house| {
                let mut found = address(
                    &house.house.to_string(),
                    &house.postcode,
                    house.point,
                    house.precision,
                );
                if house.precision > Precision::House {
                    found.confidence *= INTERPOLATED_FACTOR;
                }
                found.reasons.extend(house.reason);
                found
            });
            if is_exact {
                return Ok(houses.collect());
            }
            interpolated.get_or_insert(houses.collect());
        }
        if let Some(interpolated) = interpolated {
            return Ok(interpolated);
        }
        Ok(vec![address(
            "",
            &street.postcode,
            street.point,
            Precision::Street,
        )])
    }
}

/// The sort key: streets with their town or postcode in the query first, then by confidence.
fn rank(candidate: &StreetCandidate<'_>) -> (bool, f64) {
    (candidate.has_given_place, candidate.confidence)
}

/// A house number with its point.
struct HouseMatch {
    house: HouseNumber,
    /// Empty if unknown.
    postcode: String,
    point: LatLng,
    precision: Precision,
    reason: Option<String>,
}

/// Finds a house of a street. Returns several if the street has the number more than once and
/// `postcode` selects none of them; none if it is unknown and its point cannot be interpolated.
fn find_houses(
    lookup: &Lookup<'_>,
    street: &Street,
    house: &HouseNumber,
    postcode: Option<&str>,
) -> rusqlite::Result<Vec<HouseMatch>> {
    let same_number = lookup.houses(street.id, house.number)?;
    let exact: Vec<_> = same_number
        .iter()
        .filter(|known| known.house == *house)
        .collect();
    if !exact.is_empty() {
        return Ok(distinct(street, &exact, postcode));
    }
    if let Some(similar) = same_number.first() {
        return Ok(vec![HouseMatch {
            reason: Some(format!("estimated from {}", similar.house)),
            precision: Precision::Interpolated,
            ..house_match(street, house, similar)
        }]);
    }
    // Neighbours on the same side of the street come first.
    for any_side in [false, true] {
        if let Some((lower, upper)) = lookup.neighbours(street.id, house.number, any_side)?
            && lower.point.distance_meters(upper.point) <= MAX_INTERPOLATION_METERS
        {
            return Ok(interpolate(street, house, &lower, &upper)
                .into_iter()
                .collect());
        }
    }
    Ok(Vec::new())
}

/// The house with the postcode, otherwise one house of each group of points close to each other.
fn distinct(street: &Street, exact: &[&KnownHouse], postcode: Option<&str>) -> Vec<HouseMatch> {
    let has_postcode = |known: &&&KnownHouse| {
        postcode.is_some_and(|postcode| normalize_postcode(postcode_of(street, known)) == postcode)
    };
    if let Some(known) = exact.iter().find(has_postcode) {
        return vec![house_match(street, &known.house, known)];
    }
    let mut distinct: Vec<HouseMatch> = Vec::new();
    for known in exact {
        if distinct
            .iter()
            .all(|other| other.point.distance_meters(known.point) > SAME_HOUSE_METERS)
        {
            distinct.push(house_match(street, &known.house, known));
        }
    }
    distinct
}

fn house_match(street: &Street, house: &HouseNumber, known: &KnownHouse) -> HouseMatch {
    HouseMatch {
        house: house.clone(),
        postcode: postcode_of(street, known).to_owned(),
        point: known.point,
        precision: Precision::House,
        reason: None,
    }
}

fn postcode_of<'a>(street: &'a Street, known: &'a KnownHouse) -> &'a str {
    if known.postcode.is_empty() {
        &street.postcode
    } else {
        &known.postcode
    }
}

fn interpolate(
    street: &Street,
    house: &HouseNumber,
    lower: &KnownHouse,
    upper: &KnownHouse,
) -> Option<HouseMatch> {
    let difference = f64::from(upper.house.number.checked_sub(lower.house.number)?);
    let fraction = f64::from(house.number.checked_sub(lower.house.number)?) / difference.max(1.0);
    let interpolated = |from: f64, to: f64| from + (to - from) * fraction;
    let point = LatLng::new(
        interpolated(lower.point.latitude(), upper.point.latitude()),
        interpolated(lower.point.longitude(), upper.point.longitude()),
    );
    Some(HouseMatch {
        house: house.clone(),
        postcode: postcode_of(street, lower).to_owned(),
        point: point.ok()?,
        precision: Precision::Interpolated,
        reason: Some(format!("between {} and {}", lower.house, upper.house)),
    })
}
