//! Validates the places of a response against the query, and selects the best one.

use domain::address::LatLng;

use super::place::Place;

use crate::{
    GeocodeMatch, GeocodeResult, Mismatch, PartialMatch, Precision, Query, tokenizer::fold,
};

/// Places considered per response.
const MAX_PLACES: usize = 5;
/// Places with a lower confidence are ignored.
const MIN_CONFIDENCE: f64 = 0.4;
/// Longer texts of a response are invalid.
const MAX_CHARACTERS: usize = 300;

/// Selects the most exact valid place, the first of equally exact ones. A less exact place than
/// required is a partial match.
pub(super) fn select(places: Vec<Place>, query: &Query, countries: &[String]) -> GeocodeResult {
    let mut found: Vec<_> = places
        .into_iter()
        .take(MAX_PLACES)
        .filter_map(|place| validate(place, query, countries))
        .collect();
    found.sort_by_key(|found| found.precision);
    let Some(best) = found.first() else {
        return GeocodeResult::NotFound;
    };
    if best.precision.meets(query.required) {
        return GeocodeResult::Found(best.clone());
    }
    let mismatch = if best.precision <= Precision::Street {
        Mismatch::HouseNumber(None)
    } else {
        Mismatch::Street
    };
    if mismatch == Mismatch::Street {
        found.truncate(1);
    }
    GeocodeResult::Partial(PartialMatch::new(mismatch, found))
}

fn validate(place: Place, query: &Query, countries: &[String]) -> Option<GeocodeMatch> {
    let country = place
        .country
        .map(|country| country.to_ascii_uppercase())
        .filter(|country| country.len() == 2);
    let is_other_country = country
        .as_ref()
        .is_some_and(|country| !countries.is_empty() && !countries.contains(country));
    // Addok's responses have no country.
    let country = country.or_else(|| match countries {
        [only] => Some(only.clone()),
        _ => None,
    });
    let is_valid_text =
        |text: &String| text.chars().count() <= MAX_CHARACTERS && !text.contains(char::is_control);
    let formatted = Some(place.formatted)
        .filter(|text| !text.trim().is_empty())
        .filter(is_valid_text)?;
    let confidence = if place.confidence.is_finite() {
        place.confidence.clamp(0.0, 1.0)
    } else {
        0.0
    };
    if is_other_country || confidence < MIN_CONFIDENCE {
        return None;
    }
    let mut precision = place.precision?;
    // Without the house number of the query, only the street matches.
    if precision <= Precision::Interpolated
        && !place
            .number
            .as_deref()
            .is_some_and(|number| contains_number(number, &query.text))
    {
        precision = Precision::Street;
    }
    Some(GeocodeMatch {
        formatted,
        postal_code: place.postal_code.filter(is_valid_text),
        locality: place.locality.filter(is_valid_text),
        country,
        lat_lng: LatLng::new(place.latitude, place.longitude).ok()?,
        precision,
        confidence,
        reasons: Vec::new(),
    })
}

/// Whether a word of the text starts with the same number as a house number.
fn contains_number(number: &str, text: &str) -> bool {
    let digits = |word: &str| {
        word.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let number = digits(&fold(number));
    !number.is_empty()
        && text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| digits(&fold(word)) == number)
}
