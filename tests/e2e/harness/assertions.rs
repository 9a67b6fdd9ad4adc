//! Assertions on REST responses: media type, error and violation bodies.

use serde_json::Value;

use super::{
    Response,
    mismatches::{JSON_LD, error_mismatches, violation_mismatches},
};

/// The JSON-LD document of a response with this status.
#[track_caller]
pub(crate) fn json_ld(response: &Response, status: u16) -> Value {
    let body = String::from_utf8_lossy(&response.body);
    assert_eq!(response.status, status, "{body}");
    assert_eq!(response.header("content-type"), JSON_LD, "{body}");
    response.json.clone()
}

/// Fails unless the whole response is an error with this status that is not retryable.
#[track_caller]
pub(crate) fn assert_error(response: &Response, status: u16) {
    let mismatches = error_mismatches(response, status);
    assert_eq!(mismatches, [""; 0], "{}", response.json);
    assert_eq!(response.json["retryable"], false, "{}", response.json);
}

/// Fails unless the whole response is a 400 with exactly these violations, given by their
/// `propertyPath` in any order.
#[track_caller]
pub(crate) fn assert_violations(response: &Response, paths: &[&str]) {
    assert_error(response, 400);
    let mismatches = violation_mismatches(response);
    assert_eq!(mismatches, [""; 0], "{}", response.json);
    let [mut found, mut expected] = [response.violation_paths(), paths.to_vec()];
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", response.json);
}
