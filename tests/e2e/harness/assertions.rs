//! Assertions on REST responses: media type, error and violation bodies.

use serde_json::{Value, json};

use super::Response;

const JSON_LD: &str = "application/ld+json; charset=utf-8";

/// The JSON-LD document of a response with this status.
#[track_caller]
pub(crate) fn json_ld(response: &Response, status: u16) -> Value {
    let body = String::from_utf8_lossy(&response.body);
    assert_eq!(response.status, status, "{body}");
    assert_eq!(response.header("content-type"), JSON_LD, "{body}");
    response.json.clone()
}

/// Fails unless the whole response is an error with this status.
#[track_caller]
pub(crate) fn assert_error(response: &Response, status: u16) {
    let body = json_ld(response, status);
    assert_eq!(body, error(response, &body, status));
}

/// Fails unless the whole response is a 400 with exactly these violations, given by their
/// `propertyPath` in any order.
#[track_caller]
pub(crate) fn assert_violations(response: &Response, paths: &[&str]) {
    let body = json_ld(response, 400);
    let mut violation_paths = response.violation_paths();
    let mut expected_paths = paths.to_vec();
    violation_paths.sort_unstable();
    expected_paths.sort_unstable();
    assert_eq!(violation_paths, expected_paths, "{body}");

    let violations = body["violations"].as_array().unwrap();
    let mut lines = Vec::new();
    for violation in violations {
        let members: Vec<_> = violation.as_object().unwrap().keys().collect();
        assert_eq!(members, ["code", "message", "propertyPath"], "{body}");
        let [path, message, code] = ["propertyPath", "message", "code"].map(|member| {
            let text = violation[member].as_str().unwrap();
            assert!(!text.is_empty(), "{body}");
            text
        });
        assert!(!code.contains(' '), "{body}");
        lines.push(format!("{path}: {message}"));
    }
    let mut expected = error(response, &body, 400);
    expected["@context"] = json!("/api/contexts/ConstraintViolationList");
    expected["@type"] = json!("ConstraintViolationList");
    expected["hydra:description"] = json!(lines.join("\n"));
    expected["violations"] = json!(violations);
    assert_eq!(body, expected);
}

/// The expected error body. Members that differ between errors are checked and copied from `body`.
#[track_caller]
fn error(response: &Response, body: &Value, status: u16) -> Value {
    for member in ["hydra:description", "title", "detail", "code", "requestId"] {
        let text = body[member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "no `{member}`: {body}");
    }
    let code = body["code"].as_str().unwrap();
    let problem_type = body["type"].as_str().unwrap_or_default();
    assert!(problem_type.ends_with(&format!("/errors/{code}")), "{body}");
    json!({
        "@context": "/api/contexts/Error",
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": body["hydra:description"],
        "type": problem_type,
        "title": body["title"],
        "status": status,
        "detail": body["detail"],
        "code": code,
        "retryable": false,
        "requestId": response.header("x-request-id"),
    })
}
