//! Validates the places of a response against the query, and selects the best one.

use domain::{address::LatLng, visible::is_control};

use super::{
    agreement::{self, Agreement},
    protocol::{GeocodeRequest, Place},
};
use crate::{
    GeocodeMatch, GeocodeResult, Mismatch, PartialMatch, Precision, Query,
    tokenizer::{self, Country, fold},
};

/// Places considered per response.
const MAX_PLACES: usize = 5;
/// Places with a lower confidence are ignored.
const MIN_CONFIDENCE: f64 = 0.4;
/// Longer texts of a response are invalid.
const MAX_CHARACTERS: usize = 300;

pub(super) enum Selection {
    Result(GeocodeResult),
    /// The place, unless words of the query name another town.
    IfNoOtherTown {
        found: GeocodeMatch,
        /// Of the query, if it has one.
        postcode: Option<String>,
        /// The words that may be a town; not empty.
        towns: Vec<String>,
    },
}

/// Selects the most exact valid place whose postcode and town agree with the query; of equally
/// exact ones, the first. Otherwise a place that is less exact than required, or elsewhere, is a
/// partial match.
pub(super) fn select(places: Vec<Place>, query: &Query, countries: &[String]) -> Selection {
    let candidates = candidates(places, &query.text, countries);
    let mut mismatch = None;
    let mut unknown_town = None;
    let is_exact = |(found, _): &&(GeocodeMatch, Place)| found.precision.meets(query.required);
    for (found, place) in candidates.iter().take_while(is_exact) {
        match agreement::check(&query.text, found, place) {
            Agreement::Yes => return Selection::Result(GeocodeResult::Found(found.clone())),
            Agreement::UnknownTown { postcode, towns } => {
                unknown_town.get_or_insert_with(|| Selection::IfNoOtherTown {
                    found: found.clone(),
                    postcode,
                    towns,
                });
            }
            Agreement::No(reason) => {
                mismatch.get_or_insert_with(|| PartialMatch::new(reason, vec![found.clone()]));
            }
        }
    }
    if let Some(unknown_town) = unknown_town {
        return unknown_town;
    }
    if let Some(mismatch) = mismatch {
        return Selection::Result(GeocodeResult::Partial(mismatch));
    }
    let mut found: Vec<_> = candidates.into_iter().map(|(found, _)| found).collect();
    let Some(best) = found.first() else {
        return Selection::Result(GeocodeResult::NotFound);
    };
    let mismatch = if best.precision <= Precision::Street {
        Mismatch::HouseNumber(None)
    } else {
        found.truncate(1);
        Mismatch::Street
    };
    Selection::Result(GeocodeResult::Partial(PartialMatch::new(mismatch, found)))
}

/// Whether a response to a request for the name of a town has the town of a place; `None` if it has
/// no town of the place's country.
pub(super) fn has_town_of(
    found: &GeocodeMatch,
    places: Vec<Place>,
    request: &GeocodeRequest,
) -> Option<bool> {
    let country = Country::of(found.country.as_deref().unwrap_or_default());
    let locality = found.locality.as_deref()?;
    let candidates = candidates(places, &request.text, &request.countries);
    let mut towns = candidates
        .iter()
        .map(|(town, _)| town)
        .filter(|town| town.precision == Precision::Locality && town.country == found.country)
        .filter_map(|town| town.locality.as_deref())
        .map(|town| tokenizer::is_same_name(town, locality, country))
        .peekable();
    towns.peek()?;
    Some(towns.any(|is_same| is_same))
}

/// The valid places of a response, the most exact first.
fn candidates(places: Vec<Place>, text: &str, countries: &[String]) -> Vec<(GeocodeMatch, Place)> {
    let places = places.into_iter().take(MAX_PLACES);
    let mut candidates: Vec<_> = places
        .filter_map(|place| Some((validate(&place, text, countries)?, place)))
        .collect();
    candidates.sort_by_key(|(found, _)| found.precision);
    candidates
}

fn validate(place: &Place, text: &str, countries: &[String]) -> Option<GeocodeMatch> {
    let given = place
        .country
        .as_ref()
        .map(|country| country.to_ascii_uppercase())
        .filter(|country| country.len() == 2);
    let is_other_country = given
        .as_ref()
        .is_some_and(|country| !countries.is_empty() && !countries.contains(country));
    // Addok's responses have no country.
    let country = given.or_else(|| match countries {
        [only] => Some(only.clone()),
        _ => None,
    });
    let is_valid_text =
        |text: &String| text.chars().count() <= MAX_CHARACTERS && !text.contains(is_control);
    let formatted = &place.formatted;
    if formatted.trim().is_empty() || !is_valid_text(formatted) {
        return None;
    }
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
    if precision <= Precision::Interpolated && !contains_number(place.number(), text) {
        precision = Precision::Street;
    }
    Some(GeocodeMatch {
        formatted: formatted.clone(),
        postal_code: place.postal_code.clone().filter(is_valid_text),
        locality: place.locality.clone().filter(is_valid_text),
        country,
        lat_lng: LatLng::new(place.latitude, place.longitude).ok()?,
        precision,
        confidence,
        is_in_nearest_town: false,
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
