//! Finds a house number in a street, or interpolates its point.

use domain::address::LatLng;

use crate::{
    Precision,
    gazetteer::{
        house_number::HouseNumber,
        index::{KnownHouse, Lookup, Street, normalize_postcode},
    },
};

/// A house number with its point.
pub(super) struct HouseMatch {
    pub(super) house: HouseNumber,
    /// Empty if unknown.
    pub(super) postcode: String,
    pub(super) point: LatLng,
    pub(super) precision: Precision,
    pub(super) reason: Option<String>,
}

/// Interpolates only between neighbours within this distance.
const MAX_INTERPOLATION_METERS: f64 = 400.0;
/// Points within this distance belong to one house.
const SAME_HOUSE_METERS: f64 = 300.0;

/// Finds a house of a street. Returns several if the street has the number more than once and
/// `postcode` selects none of them; none if it is unknown and its point cannot be interpolated.
pub(super) fn find(
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
