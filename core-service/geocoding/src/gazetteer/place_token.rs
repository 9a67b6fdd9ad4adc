//! Tokens for the places of a street in the full-text index: its locality, postcodes, map cell and
//! country. The first letter of a token is the kind of place.

use crate::tokenizer::fold;

pub(super) fn locality(id: i64) -> String {
    format!("l{id}")
}

/// Of a normalized postcode.
pub(super) fn postcode(code: &str) -> String {
    format!("p{code}")
}

pub(super) fn cell(number: i64) -> String {
    format!("g{number}")
}

pub(super) fn country(code: &str) -> String {
    format!("c{}", fold(code))
}

/// Lower case, without blanks or punctuation.
pub(super) fn normalize_postcode(postcode: &str) -> String {
    fold(postcode)
}
