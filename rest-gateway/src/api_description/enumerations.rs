//! The closed sets of strings in requests and responses: those of `enumerations.json`, the days of
//! the week, and the codes of errors, violations and warnings.

use std::sync::LazyLock;

use serde::Deserialize;

use super::parse_json;
use crate::representation::{
    error_codes,
    violation_codes::{VIOLATIONS, WARNINGS, codes},
};

/// From Monday, as in core's messages.
pub(crate) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A closed set of strings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Enumeration {
    /// The name of its JSON Schema.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) values: Vec<String>,
}

/// Every closed set.
pub(super) static ALL: LazyLock<Vec<Enumeration>> = LazyLock::new(|| {
    let mut all: Vec<Enumeration> = parse_json(include_str!("enumerations.json"));
    for enumeration in &mut all {
        let values = match enumeration.name.as_str() {
            "DayOfWeek" => DAYS.to_vec(),
            "ErrorCode" => error_codes::CODES.to_vec(),
            "ViolationCode" => codes(&VIOLATIONS),
            "WarningCode" => codes(&WARNINGS),
            _ => continue,
        };
        enumeration.values = values.into_iter().map(str::to_owned).collect();
    }
    all
});
