//! The tables of codes: the values of `code` in an error body, in its `violations` and in `warnings`, and
//! the texts of the page of each. `api_description/openapi/violation_examples.json` has an example of
//! each violation and warning, recorded by an end-to-end test.

use std::sync::LazyLock;

use http::StatusCode;
use serde::Deserialize;

/// The texts of the errors, in the order of [`ALL`].
pub(crate) static ERRORS: LazyLock<Vec<CodeTexts>> =
    LazyLock::new(|| parse(include_str!("error_codes.json")));

/// The texts of the violations, in alphabetical order.
pub(crate) static VIOLATIONS: LazyLock<Vec<CodeTexts>> =
    LazyLock::new(|| parse(include_str!("violation_codes.json")));

/// The texts of the warnings, in alphabetical order.
pub(crate) static WARNINGS: LazyLock<Vec<CodeTexts>> =
    LazyLock::new(|| parse(include_str!("warning_codes.json")));

/// What people read about a code.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodeTexts {
    pub(crate) code: String,
    pub(crate) title: String,
    /// What happened; empty for violations and warnings, which say it themselves.
    #[serde(default)]
    pub(crate) meaning: String,
    /// Why it happened.
    pub(crate) cause: String,
    /// What to do about it.
    pub(crate) solution: String,
}

fn parse(table: &str) -> Vec<CodeTexts> {
    serde_json::from_str(table).expect("a test parses the tables")
}

pub(crate) fn find_texts<'t>(table: &'t [CodeTexts], code: &str) -> Option<&'t CodeTexts> {
    table.iter().find(|known| known.code == code)
}

pub(crate) fn codes(table: &[CodeTexts]) -> Vec<&str> {
    table.iter().map(|known| known.code.as_str()).collect()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode {
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    /// Whether the same request may succeed later.
    pub(crate) retryable: bool,
}

impl ErrorCode {
    pub(crate) fn texts(&self) -> &'static CodeTexts {
        find_texts(&ERRORS, self.code).expect("a test finds the texts of every code")
    }
}

pub(crate) fn find(code: &str) -> Option<&'static ErrorCode> {
    ALL.iter().copied().find(|known| known.code == code)
}

macro_rules! error_codes {
    ($($name:ident = $code:literal, $status:ident, $retryable:literal;)*) => {
        $(pub(crate) static $name: ErrorCode = ErrorCode {
            code: $code,
            status: StatusCode::$status,
            retryable: $retryable,
        };)*

        /// Every error code, by ascending HTTP status.
        pub(crate) static ALL: &[&ErrorCode] = &[$(&$name),*];
    };
}

// The last column says whether the same request may succeed later.
error_codes! {
    VALIDATION_FAILED = "validation_failed", BAD_REQUEST, false;
    PRICE_NOT_CALCULATED = "price_not_calculated", BAD_REQUEST, false;
    PRICE_MISMATCH = "price_mismatch", BAD_REQUEST, false;
    UNAUTHENTICATED = "unauthenticated", UNAUTHORIZED, false;
    TOKEN_MISSING = "token_missing", UNAUTHORIZED, false;
    TOKEN_INVALID = "token_invalid", UNAUTHORIZED, false;
    TOKEN_EXPIRED = "token_expired", UNAUTHORIZED, false;
    INSUFFICIENT_SCOPE = "insufficient_scope", FORBIDDEN, false;
    NO_STORE = "no_store", FORBIDDEN, false;
    STORE_DISABLED = "store_disabled", FORBIDDEN, false;
    NOT_FOUND = "not_found", NOT_FOUND, false;
    METHOD_NOT_ALLOWED = "method_not_allowed", METHOD_NOT_ALLOWED, false;
    NOT_ACCEPTABLE = "not_acceptable", NOT_ACCEPTABLE, false;
    REQUEST_TIMEOUT = "request_timeout", REQUEST_TIMEOUT, true;
    CONFLICT = "conflict", CONFLICT, false;
    TASK_STATE = "task_state", CONFLICT, false;
    ERASED = "erased", CONFLICT, false;
    NOT_ASSIGNED = "not_assigned", CONFLICT, false;
    IMAGES_NOT_KEPT = "images_not_kept", CONFLICT, false;
    LISTS_CHANGED = "lists_changed", CONFLICT, true;
    SLOT_FULL = "slot_full", CONFLICT, false;
    COURIER_DISABLED = "courier_disabled", CONFLICT, false;
    PRICE_EXPIRED = "price_expired", CONFLICT, false;
    PRICE_USED = "price_used", CONFLICT, false;
    EXTERNAL_REFERENCE_TAKEN = "external_reference_taken", CONFLICT, false;
    IDEMPOTENCY_KEY_IN_USE = "idempotency_key_in_use", CONFLICT, true;
    WEBHOOK_DISABLED = "webhook_disabled", CONFLICT, false;
    WEBHOOK_DISABLED_BY_OPERATOR = "webhook_disabled_by_operator", CONFLICT, false;
    TOO_MANY_ATTEMPTS = "too_many_attempts", CONFLICT, false;
    EVENTS_EXPIRED = "events_expired", GONE, false;
    TRACKING_ENDED = "tracking_ended", GONE, false;
    PRECONDITION_FAILED = "precondition_failed", PRECONDITION_FAILED, false;
    PAYLOAD_TOO_LARGE = "payload_too_large", PAYLOAD_TOO_LARGE, false;
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, false;
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused", UNPROCESSABLE_ENTITY, false;
    TOO_MANY_REQUESTS = "too_many_requests", TOO_MANY_REQUESTS, true;
    TOO_MANY_WEBHOOKS = "too_many_webhooks", TOO_MANY_REQUESTS, false;
    TOO_MANY_DELIVERIES = "too_many_deliveries", TOO_MANY_REQUESTS, true;
    HEADERS_TOO_LARGE = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, false;
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, false;
    NOT_IMPLEMENTED = "not_implemented", NOT_IMPLEMENTED, false;
    OVERLOADED = "overloaded", SERVICE_UNAVAILABLE, true;
    UNAVAILABLE = "unavailable", SERVICE_UNAVAILABLE, true;
    DEADLINE_EXCEEDED = "deadline_exceeded", GATEWAY_TIMEOUT, true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_exact_text() {
        assert_eq!(find("task_state"), Some(&TASK_STATE));
        assert_eq!(find("TASK_STATE"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn a_code_is_its_constants_name_in_lower_case() {
        assert_eq!(UNSUPPORTED_MEDIA_TYPE.code, "unsupported_media_type");
        assert!(ALL.iter().all(|code| find(code.code) == Some(*code)));
    }

    #[test]
    fn every_error_code_has_texts_and_its_status_decides_its_place() {
        let listed: Vec<_> = ALL.iter().map(|code| code.code).collect();
        assert_eq!(codes(&ERRORS), listed);
        assert!(ALL.is_sorted_by_key(|code| code.status));
        for texts in ERRORS.iter() {
            assert!(!texts.meaning.is_empty(), "{}", texts.code);
        }
        assert!(UNAVAILABLE.retryable && !CONFLICT.retryable);
    }

    #[test]
    fn codes_are_sorted_and_shared_with_errors_only_where_the_meaning_is_the_same() {
        assert!(codes(&VIOLATIONS).is_sorted());
        assert!(codes(&WARNINGS).is_sorted());
        let mut shared = codes(&WARNINGS);
        shared.retain(|code| find_texts(&VIOLATIONS, code).is_some() || find(code).is_some());
        assert_eq!(shared, ["price_not_calculated"]);
        let mut shared = codes(&VIOLATIONS);
        shared.retain(|code| find(code).is_some());
        assert_eq!(shared, ["conflict", "price_expired"]);
        let title = find_texts(&VIOLATIONS, "too_long").map(|code| code.title.as_str());
        assert_eq!(title, Some("Too long"));
        assert_eq!(find_texts(&VIOLATIONS, "TOO_LONG"), None);
    }
}
