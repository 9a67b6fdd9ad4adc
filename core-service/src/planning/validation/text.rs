//! Validates requested texts.

use domain::violation::Violations;

/// The trimmed text; none if it is empty or invalid.
pub(super) fn checked_text(
    field: &str,
    text: &str,
    limit: usize,
    violations: &mut Violations,
) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && check_characters(field, text, limit, violations)).then(|| text.to_owned())
}

/// Whether a text is short enough and has no control characters.
pub(super) fn check_characters(
    field: &str,
    text: &str,
    limit: usize,
    violations: &mut Violations,
) -> bool {
    if text.chars().count() > limit {
        violations.add(
            field,
            "TOO_LONG",
            format!("must be at most {limit} characters"),
        );
        return false;
    }
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.contains(forbidden) {
        violations.add(
            field,
            "CONTROL_CHARACTER",
            "must not contain control characters",
        );
        return false;
    }
    true
}
