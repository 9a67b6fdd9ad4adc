//! Validation errors: all violations of a request at once, and its warnings.

use std::borrow::Cow;

/// One violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Path in the request message: `dropoff.address.lat_lng`.
    pub field: String,
    /// For people: what is wrong and what would be right. No full stop.
    pub description: String,
    /// For programs: `UPPER_SNAKE`.
    pub reason: Cow<'static, str>,
}

/// The violations of one request, in the order they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    found: Vec<Violation>,
    warnings: Vec<Violation>,
}

impl Violations {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a violation, unless the field or a parent of it has one already: for an address of the
    /// wrong type, a missing member is not reported.
    pub fn add(
        &mut self,
        field: impl Into<String>,
        reason: impl Into<Cow<'static, str>>,
        description: impl Into<String>,
    ) {
        let field = field.into();
        let is_reported = |violation: &Violation| contains(&violation.field, &field);
        if !self.found.iter().any(is_reported) {
            self.found.push(Violation {
                field,
                description: description.into(),
                reason: reason.into(),
            });
        }
    }

    /// Adds a warning: the request is valid, but may not be what the client means.
    pub fn warn(
        &mut self,
        field: impl Into<String>,
        reason: &'static str,
        description: impl Into<String>,
    ) {
        self.warnings.push(Violation {
            field: field.into(),
            description: description.into(),
            reason: reason.into(),
        });
    }

    pub fn into_warnings(self) -> Vec<Violation> {
        self.warnings
    }

    /// Returns the value of a successful parse; adds a violation for a failed one.
    pub fn check<T, E: std::fmt::Display>(
        &mut self,
        field: impl Into<String>,
        reason: &'static str,
        parsed: Result<T, E>,
    ) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(field, reason, error.to_string());
                None
            }
        }
    }

    /// The violations of a message that is a field of another one.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        for violation in self.found.iter_mut().chain(&mut self.warnings) {
            violation.field = format!("{field}.{}", violation.field);
        }
        self
    }

    /// Whether a field or a part of it has a violation.
    pub fn has_violation_in(&self, field: &str) -> bool {
        self.found
            .iter()
            .any(|violation| contains(field, &violation.field))
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.found.iter()
    }
}

/// Whether `field` is `whole` or a part of it.
fn contains(whole: &str, field: &str) -> bool {
    field
        .strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_reported_once_and_not_below_an_invalid_parent() {
        let mut violations = Violations::new();

        violations.add("dropoff", "WRONG_TYPE", "must be an object");
        violations.add("dropoff", "REQUIRED", "is required");
        violations.add("dropoff.before", "REQUIRED", "is required");
        violations.add("dropoffs", "OTHER", "is another field");

        let fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["dropoff", "dropoffs"]);
    }

    #[test]
    fn a_failed_parse_is_a_violation_of_its_field_and_of_the_whole_field() {
        let mut violations = Violations::new();

        let number = violations.check("weight", "WRONG_TYPE", "5".parse::<u32>());
        assert!(violations.is_empty());
        let wrong = violations.check("dropoff.before", "WRONG_TYPE", "x".parse::<u32>());

        assert_eq!((number, wrong), (Some(5), None));
        assert!(!violations.is_empty());
        for (field, expected) in [
            ("dropoff", true),
            ("dropoff.before", true),
            ("drop", false),
            ("weight", false),
        ] {
            assert_eq!(violations.has_violation_in(field), expected, "{field}");
        }
        let fields: Vec<_> = violations.into_iter().map(|found| found.field).collect();
        assert_eq!(fields, ["dropoff.before"]);
    }
}
