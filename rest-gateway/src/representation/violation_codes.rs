//! The tables of violation codes and warning codes: the values of `code` in `violations` and in
//! `warnings`, and the texts of their pages. `api_description/openapi/violation_examples.json` has
//! an example of each, recorded by an end-to-end test.

use std::sync::LazyLock;

use serde::Deserialize;

/// In alphabetical order.
pub(crate) static VIOLATIONS: LazyLock<Vec<ViolationCode>> =
    LazyLock::new(|| parse(include_str!("violation_codes.json")));

/// In alphabetical order.
pub(crate) static WARNINGS: LazyLock<Vec<ViolationCode>> =
    LazyLock::new(|| parse(include_str!("warning_codes.json")));

/// A kind of violation or warning.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViolationCode {
    pub(crate) code: String,
    pub(crate) title: String,
    /// Why a part of a request is invalid, or may be a mistake.
    pub(crate) cause: String,
    /// How to correct it.
    pub(crate) solution: String,
}

fn parse(table: &str) -> Vec<ViolationCode> {
    serde_json::from_str(table).expect("a test parses both tables")
}

/// Finds a code of a table by its text.
pub(crate) fn find<'t>(table: &'t [ViolationCode], code: &str) -> Option<&'t ViolationCode> {
    table.iter().find(|known| known.code == code)
}

/// The codes of a table alone.
pub(crate) fn codes(table: &[ViolationCode]) -> Vec<&str> {
    table.iter().map(|known| known.code.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::representation::error_codes;

    #[test]
    fn codes_are_sorted_and_shared_with_errors_only_where_the_meaning_is_the_same() {
        assert!(codes(&VIOLATIONS).is_sorted());
        assert!(codes(&WARNINGS).is_sorted());
        for code in codes(&WARNINGS) {
            let found = (find(&VIOLATIONS, code), error_codes::find(code));
            assert_eq!(found, (None, None));
        }
        let mut shared = codes(&VIOLATIONS);
        shared.retain(|code| error_codes::find(code).is_some());
        assert_eq!(shared, ["conflict", "price_expired"]);
        let title = find(&VIOLATIONS, "too_long").map(|code| code.title.as_str());
        assert_eq!(title, Some("Too long"));
        assert_eq!(find(&VIOLATIONS, "TOO_LONG"), None);
    }
}
