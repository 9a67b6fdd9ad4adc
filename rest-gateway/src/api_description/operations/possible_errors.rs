//! The error codes of an operation: those that the table lists, and those derived from its other
//! fields.

use std::collections::BTreeMap;

use super::{Auth, Expects, Operation, Returns};
use crate::representation::error_codes::{self as codes, ErrorCode};

/// The error codes of an operation, by HTTP status.
pub(in crate::api_description) fn error_codes_by_status(
    operation: &Operation,
) -> BTreeMap<u16, Vec<&'static ErrorCode>> {
    let mut by_status: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for code in operation
        .error_codes
        .iter()
        .copied()
        .chain(derived(operation))
    {
        let codes = by_status.entry(code.status.as_u16()).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    by_status
}

/// The error codes that follow from the credentials, body, parameters, path and response.
fn derived(operation: &Operation) -> Vec<&'static ErrorCode> {
    let mut derived: Vec<&'static ErrorCode> = Vec::new();
    match &operation.auth {
        Auth::None => {}
        // Rejected credentials are answered as RFC 6749 defines: see `token_errors.json`.
        Auth::ClientCredentials => derived.push(&codes::UNAVAILABLE),
        Auth::Token => {
            derived.extend(ACCESS_TOKEN_ERRORS);
            derived.push(&codes::STORE_DISABLED);
        }
        Auth::StoreToken => {
            derived.extend(ACCESS_TOKEN_ERRORS);
            derived.extend([&codes::NO_STORE, &codes::STORE_DISABLED]);
        }
        Auth::Scope(_) | Auth::AnyScope(_) => {
            derived.extend(ACCESS_TOKEN_ERRORS);
            derived.extend([
                &codes::INSUFFICIENT_SCOPE,
                &codes::NO_STORE,
                &codes::STORE_DISABLED,
            ]);
        }
    }
    match operation.expects {
        Expects::Nothing => {}
        Expects::Resource(..) | Expects::Optional(..) | Expects::EmptyObject => {
            derived.extend(BODY_ERRORS);
        }
        Expects::Form | Expects::Image => derived.extend([
            &codes::REQUEST_TIMEOUT,
            &codes::PAYLOAD_TOO_LARGE,
            &codes::OVERLOADED,
        ]),
    }
    if operation.is_rate_limited() {
        derived.push(&codes::TOO_MANY_REQUESTS);
    }
    if operation.accepts_idempotency_key() {
        derived.extend([
            &codes::IDEMPOTENCY_KEY_IN_USE,
            &codes::IDEMPOTENCY_KEY_REUSED,
        ]);
    }
    if operation.path.contains('{') {
        derived.push(&codes::NOT_FOUND);
    }
    if is_shadowed_by_literal_path(operation) {
        derived.push(&codes::METHOD_NOT_ALLOWED);
    }
    if operation.returns.is_negotiated() {
        derived.push(&codes::NOT_ACCEPTABLE);
    }
    if !operation.returns.is_fixed() {
        // Operations with a fixed media type ignore unknown query parameters. To read a document needs
        // no turn.
        derived.extend([&codes::VALIDATION_FAILED, &codes::OVERLOADED]);
    }
    // All entity tags are weak, so every `If-Match` but `*` fails.
    derived.push(&codes::PRECONDITION_FAILED);
    if !matches!(
        (&operation.auth, &operation.returns),
        (
            Auth::None,
            Returns::Document(..) | Returns::Text(_) | Returns::Health
        )
    ) {
        derived.extend([&codes::INTERNAL, &codes::DEADLINE_EXCEEDED]);
    }
    derived
}

/// Whether a path without parameters, but with another method, matches the operation's path: `GET
/// /api/deliveries/assert` does not get the delivery `assert`, but fails because the path has only
/// `POST`. Assumes that such a path has one method.
fn is_shadowed_by_literal_path(operation: &Operation) -> bool {
    let segments = || operation.path.split('/');
    super::all().any(|other| {
        !other.path.contains('{')
            && other.method != operation.method
            && other.path.split('/').count() == segments().count()
            && segments()
                .zip(other.path.split('/'))
                .all(|(segment, literal)| segment == literal || segment.starts_with('{'))
            && other.path != operation.path
    })
}

const ACCESS_TOKEN_ERRORS: &[&ErrorCode] = &[
    &codes::TOKEN_MISSING,
    &codes::TOKEN_INVALID,
    &codes::TOKEN_EXPIRED,
    &codes::UNAVAILABLE,
];

const BODY_ERRORS: &[&ErrorCode] = &[
    &codes::VALIDATION_FAILED,
    &codes::REQUEST_TIMEOUT,
    &codes::PAYLOAD_TOO_LARGE,
    &codes::UNSUPPORTED_MEDIA_TYPE,
];
