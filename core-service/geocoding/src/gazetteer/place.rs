//! What the index calls places: towns, postcodes, cells of the map, countries.

use crate::words::folded;

/// A place that a street is in, as a word of the index.
pub(super) enum PlaceToken {
    Locality(i64),
    Postcode(String),
    Cell(i64),
    Country(String),
}

impl PlaceToken {
    /// None for an empty postcode.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Locality(id) => Some(format!("l{id}")),
            Self::Postcode(postcode) => Some(code(postcode))
                .filter(|code| !code.is_empty())
                .map(|code| format!("p{code}")),
            Self::Cell(number) => Some(format!("g{number}")),
            Self::Country(country) => Some(format!("c{}", folded(country))),
        }
    }
}

/// A postcode for comparing: small letters, no blanks.
pub(super) fn code(postcode: &str) -> String {
    folded(postcode)
}
