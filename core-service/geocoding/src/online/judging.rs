//! What of a service's answer is believed: a point on the earth, the country asked for, the house
//! number that was written.

use domain::address::LatLng;

use super::Place;

use crate::{Answer, Found, Missing, Precision, Query, Unclear, words::folded};

/// The answers that are looked at.
const MOST_PLACES: usize = 5;
/// Places that the service itself is less sure of are none.
const LEAST_CONFIDENCE: f64 = 0.4;
/// Texts of an answer that are longer are not kept.
const LONGEST_TEXT: usize = 300;

/// The most exact of the places that can be true, if it is exact enough; of equals the service's
/// first.
pub(super) fn judge(places: Vec<Place>, query: &Query, countries: &[String]) -> Answer {
    let mut found: Vec<_> = places
        .into_iter()
        .take(MOST_PLACES)
        .filter_map(|place| checked(place, query, countries))
        .collect();
    found.sort_by_key(|found| found.precision);
    let Some(best) = found.first() else {
        return Answer::NotFound;
    };
    if best.precision.meets(query.demand) {
        return Answer::Found(best.clone());
    }
    let missing = if best.precision <= Precision::Street {
        Missing::HouseNumber(None)
    } else {
        Missing::Street
    };
    if missing == Missing::Street {
        found.truncate(1);
    }
    Answer::Unclear(Unclear::new(missing, found))
}

fn checked(place: Place, query: &Query, countries: &[String]) -> Option<Found> {
    let country = place
        .country
        .map(|country| country.to_ascii_uppercase())
        .filter(|country| country.len() == 2);
    let is_elsewhere = country
        .as_ref()
        .is_some_and(|country| !countries.is_empty() && !countries.contains(country));
    // Addok does not say in which country it looked.
    let country = country.or_else(|| match countries {
        [only] => Some(only.clone()),
        _ => None,
    });
    let is_short =
        |text: &String| text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control);
    let formatted = Some(place.formatted)
        .filter(|text| !text.trim().is_empty())
        .filter(is_short)?;
    let confidence = if place.confidence.is_finite() {
        place.confidence.clamp(0.0, 1.0)
    } else {
        0.0
    };
    if is_elsewhere || confidence < LEAST_CONFIDENCE {
        return None;
    }
    let mut precision = place.precision?;
    // A house of another number is another house.
    if precision <= Precision::Interpolated
        && !place
            .number
            .as_deref()
            .is_some_and(|number| is_written(number, &query.text))
    {
        precision = Precision::Street;
    }
    Some(Found {
        formatted,
        postal_code: place.postal_code.filter(is_short),
        locality: place.locality.filter(is_short),
        country,
        lat_lng: LatLng::new(place.latitude, place.longitude).ok()?,
        precision,
        confidence,
        reasons: Vec::new(),
    })
}

/// Has the text a word that begins with a house number's digits?
fn is_written(number: &str, text: &str) -> bool {
    let digits = |word: &str| {
        word.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let number = digits(&folded(number));
    !number.is_empty()
        && text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| digits(&folded(word)) == number)
}
