//! Which of the streets is meant, and whether that is exact enough.

use domain::address::LatLng;

use super::{AREA_METERS, Scope, Search, numbering, placing::Placed};

use crate::{Answer, Found, Missing, Precision, Reason, Unclear};

/// No town was named: the one in the area is meant.
const BY_AREA: f64 = 0.9;
/// No town was named, and none in the area has such a street.
const FAR_AWAY: f64 = 0.7;
/// The number is not known, its neighbours are.
const INTERPOLATED: f64 = 0.9;

impl Search<'_> {
    /// The one place that is exact enough, or what is missing.
    pub(super) fn judge(
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

    pub(super) fn tell_elsewhere(&self, mut elsewhere: Vec<Placed>) -> rusqlite::Result<Answer> {
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
        let is_near = |placed: &Placed| placed.street.point.distance_meters(near) <= AREA_METERS;
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
}

/// What is meant rather: what is named with its town, and then what is written right.
fn rank(placed: &Placed) -> (bool, f64) {
    (placed.is_named, placed.confidence)
}
