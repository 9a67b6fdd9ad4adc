//! Tokens of places in the full-text index: towns, postcodes, map cells, countries.

use crate::tokenizer::fold;

/// A place that contains a street.
pub(super) enum PlaceToken {
    Locality(i64),
    Postcode(String),
    Cell(i64),
    Country(String),
}

impl PlaceToken {
    /// The token as written in the index; `None` for an empty postcode.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Locality(id) => Some(format!("l{id}")),
            Self::Postcode(postcode) => Some(normalize_postcode(postcode))
                .filter(|code| !code.is_empty())
                .map(|code| format!("p{code}")),
            Self::Cell(number) => Some(format!("g{number}")),
            Self::Country(country) => Some(format!("c{}", fold(country))),
        }
    }
}

/// Lower case, without blanks or punctuation.
pub(super) fn normalize_postcode(postcode: &str) -> String {
    fold(postcode)
}
