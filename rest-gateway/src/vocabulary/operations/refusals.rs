//! Why an operation may be refused: its own reasons, and those that follow from what it is.

use std::collections::BTreeMap;

use super::{Expects, Needs, Operation, Returns};
use crate::error_codes::{self as codes, ErrorCode};

/// The codes with which an operation may be refused, by their status.
pub(in crate::vocabulary) fn refusals(
    operation: &Operation,
) -> BTreeMap<u16, Vec<&'static ErrorCode>> {
    let mut refusals: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for code in operation.refusals.iter().copied().chain(implied(operation)) {
        let same = refusals.entry(code.status.as_u16()).or_default();
        if !same.contains(&code) {
            same.push(code);
        }
    }
    refusals
}

fn implied(operation: &Operation) -> Vec<&'static ErrorCode> {
    let mut implied: Vec<&'static ErrorCode> = Vec::new();
    match operation.needs {
        Needs::Nothing => {}
        // Who is not let in is told so as RFC 6749 says.
        Needs::Credentials => implied.push(&codes::UNAVAILABLE),
        Needs::Token => implied.extend(OF_A_TOKEN),
        Needs::Scope(_) => implied.extend(OF_A_TOKEN.iter().chain(OF_A_SCOPE)),
    }
    match operation.expects {
        Expects::Nothing => {}
        Expects::Resource(..) | Expects::Optional(..) | Expects::Empty => implied.extend(OF_A_BODY),
        Expects::Form => implied.extend([&codes::REQUEST_TIMEOUT, &codes::PAYLOAD_TOO_LARGE]),
    }
    if operation.is_counted() {
        implied.push(&codes::TOO_MANY_REQUESTS);
    }
    if operation.takes_a_key() {
        implied.extend([
            &codes::IDEMPOTENCY_KEY_IN_USE,
            &codes::IDEMPOTENCY_KEY_REUSED,
        ]);
    }
    if operation.path.contains('{') {
        implied.push(&codes::NOT_FOUND);
    }
    if is_shadowed(operation) {
        implied.push(&codes::METHOD_NOT_ALLOWED);
    }
    if operation
        .parameters
        .iter()
        .any(|parameter| parameter.place == "query")
    {
        implied.extend([&codes::VALIDATION_FAILED]);
    }
    if operation.returns.is_negotiated() {
        implied.extend([&codes::NOT_ACCEPTABLE, &codes::OVERLOADED]);
    }
    if !matches!(
        (operation.needs, operation.returns),
        (Needs::Nothing, Returns::Document(..) | Returns::Health)
    ) {
        implied.extend([&codes::INTERNAL, &codes::DEADLINE_EXCEEDED]);
    }
    implied
}

/// Whether what stands for `{…}` may be the name of another operation, which has other methods:
/// no delivery has the id `assert`.
fn is_shadowed(operation: &Operation) -> bool {
    let parts = || operation.path.split('/');
    super::all().any(|other| {
        !other.path.contains('{')
            && other.method != operation.method
            && other.path.split('/').count() == parts().count()
            && parts()
                .zip(other.path.split('/'))
                .all(|(part, segment)| part == segment || part.starts_with('{'))
            && other.path != operation.path
    })
}

const OF_A_TOKEN: &[&ErrorCode] = &[
    &codes::TOKEN_MISSING,
    &codes::TOKEN_INVALID,
    &codes::TOKEN_EXPIRED,
    &codes::UNAVAILABLE,
];

const OF_A_SCOPE: &[&ErrorCode] = &[&codes::INSUFFICIENT_SCOPE, &codes::NO_STORE];

const OF_A_BODY: &[&ErrorCode] = &[
    &codes::VALIDATION_FAILED,
    &codes::REQUEST_TIMEOUT,
    &codes::PAYLOAD_TOO_LARGE,
    &codes::UNSUPPORTED_MEDIA_TYPE,
];
