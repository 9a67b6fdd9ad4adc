//! Where in a street a house is.

use domain::address::LatLng;

use crate::{
    Precision, Reason,
    gazetteer::{
        house::House,
        index::{Known, Lookup, Street},
        place::code,
    },
};

/// A house that was looked for, and where it is.
pub(super) struct Numbered {
    pub(super) house: House,
    /// Empty if it is not known.
    pub(super) postcode: String,
    pub(super) point: LatLng,
    pub(super) precision: Precision,
    pub(super) reason: Option<Reason>,
}

/// Neighbours farther apart say nothing about the houses between them.
const BETWEEN_METERS: f64 = 400.0;
/// Two points of one house are not farther apart.
const SAME_HOUSE_METERS: f64 = 300.0;

/// The house of a street; several if it has that number more than once and `postcode` does not
/// tell them apart, none if it is not known nor any near it.
pub(super) fn find(
    lookup: &Lookup<'_>,
    street: &Street,
    house: &House,
    postcode: Option<&str>,
) -> rusqlite::Result<Vec<Numbered>> {
    let same_number = lookup.houses(street.id, house.number)?;
    let exact: Vec<_> = same_number
        .iter()
        .filter(|known| known.house == *house)
        .collect();
    if !exact.is_empty() {
        return Ok(apart(street, &exact, postcode));
    }
    if let Some(beside) = same_number.first() {
        return Ok(vec![Numbered {
            reason: Some(Reason::Beside(beside.house.to_string())),
            precision: Precision::Interpolated,
            ..numbered(street, house, beside)
        }]);
    }
    for any_side in [false, true] {
        if let Some((lower, upper)) = lookup.neighbours(street.id, house.number, any_side)?
            && lower.point.distance_meters(upper.point) <= BETWEEN_METERS
        {
            return Ok(between(street, house, &lower, &upper).into_iter().collect());
        }
    }
    Ok(Vec::new())
}

/// One of each place that has the house.
fn apart(street: &Street, exact: &[&Known], postcode: Option<&str>) -> Vec<Numbered> {
    let is_asked = |known: &&&Known| postcode.is_some_and(|asked| code(of(street, known)) == asked);
    if let Some(known) = exact.iter().find(is_asked) {
        return vec![numbered(street, &known.house, known)];
    }
    let mut apart: Vec<Numbered> = Vec::new();
    for known in exact {
        if apart
            .iter()
            .all(|other| other.point.distance_meters(known.point) > SAME_HOUSE_METERS)
        {
            apart.push(numbered(street, &known.house, known));
        }
    }
    apart
}

fn numbered(street: &Street, house: &House, known: &Known) -> Numbered {
    Numbered {
        house: house.clone(),
        postcode: of(street, known).to_owned(),
        point: known.point,
        precision: Precision::House,
        reason: None,
    }
}

fn of<'a>(street: &'a Street, known: &'a Known) -> &'a str {
    if known.postcode.is_empty() {
        &street.postcode
    } else {
        &known.postcode
    }
}

fn between(street: &Street, house: &House, lower: &Known, upper: &Known) -> Option<Numbered> {
    let numbers = f64::from(upper.house.number.checked_sub(lower.house.number)?);
    let part = f64::from(house.number.checked_sub(lower.house.number)?) / numbers.max(1.0);
    let on_the_way = |from: f64, to: f64| from + (to - from) * part;
    let point = LatLng::new(
        on_the_way(lower.point.latitude(), upper.point.latitude()),
        on_the_way(lower.point.longitude(), upper.point.longitude()),
    );
    Some(Numbered {
        house: house.clone(),
        postcode: of(street, lower).to_owned(),
        point: point.ok()?,
        precision: Precision::Interpolated,
        reason: Some(Reason::Between(
            lower.house.to_string(),
            upper.house.to_string(),
        )),
    })
}
