//! What a service elsewhere is asked: of a query, what the operator lets it be told.

use domain::address::LatLng;

use crate::Query;

/// A question, the same for every protocol.
pub(super) struct Question {
    pub(super) text: String,
    /// ISO 3166-1 alpha-2, capitals: places elsewhere are none. Any country if empty.
    pub(super) countries: Vec<String>,
    /// Did the operator name countries? Then the service is one that can be told of them.
    pub(super) is_limited: bool,
    /// Near what to look first.
    pub(super) near: Option<LatLng>,
    /// BCP 47.
    pub(super) language: String,
}

/// Characters of a query; Addok refuses more than 200.
const LONGEST_TEXT: usize = 200;

/// What is the same for all questions to a service.
pub(super) struct Manner {
    /// The only countries that it is asked about; any if empty.
    pub(super) countries: Vec<String>,
    /// BCP 47.
    pub(super) language: String,
    /// Is it told near what to look first?
    pub(super) bias: bool,
}

impl Manner {
    /// None if it is about a country that the service is not asked about.
    pub(super) fn question(&self, query: &Query) -> Option<Question> {
        let asked = query.country.as_ref().map(|code| code.to_ascii_uppercase());
        let countries = match asked {
            None => self.countries.clone(),
            Some(asked) if self.countries.is_empty() || self.countries.contains(&asked) => {
                vec![asked]
            }
            Some(_) => return None,
        };
        Some(Question {
            text: query.text.chars().take(LONGEST_TEXT).collect(),
            countries,
            is_limited: !self.countries.is_empty(),
            near: query.near.filter(|_| self.bias),
            language: self.language.clone(),
        })
    }
}
