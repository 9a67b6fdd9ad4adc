//! What every answer of the REST API has in common: media type, and the bodies of refusals.

use serde_json::{Value, json};

use super::Answer;

const JSON_LD: &str = "application/ld+json; charset=utf-8";

/// The JSON-LD document of an answer with this status.
#[track_caller]
pub(crate) fn json_ld(answer: &Answer, status: u16) -> Value {
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, status, "{body}");
    assert_eq!(answer.header("content-type"), JSON_LD, "{body}");
    answer.json.clone()
}

/// Fails unless the whole answer is an error with this status.
#[track_caller]
pub(crate) fn assert_error(answer: &Answer, status: u16) {
    let body = json_ld(answer, status);
    assert_eq!(body, error(answer, &body, status));
}

/// Fails unless the whole answer says that the request breaks these rules, and no other: the
/// `propertyPath` of each violation, in any order.
#[track_caller]
pub(crate) fn assert_violations(answer: &Answer, paths: &[&str]) {
    let body = json_ld(answer, 400);
    let mut violated = answer.violated();
    let mut expected_paths = paths.to_vec();
    violated.sort_unstable();
    expected_paths.sort_unstable();
    assert_eq!(violated, expected_paths, "{body}");

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
    let mut expected = error(answer, &body, 400);
    expected["@context"] = json!("/api/contexts/ConstraintViolationList");
    expected["@type"] = json!("ConstraintViolationList");
    expected["hydra:description"] = json!(lines.join("\n"));
    expected["violations"] = json!(violations);
    assert_eq!(body, expected);
}

/// The error body, with what differs from error to error taken from `body` once it is sound.
#[track_caller]
fn error(answer: &Answer, body: &Value, status: u16) -> Value {
    for member in ["hydra:description", "title", "detail", "code", "requestId"] {
        let text = body[member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "no `{member}`: {body}");
    }
    let code = body["code"].as_str().unwrap();
    let explanation = body["type"].as_str().unwrap_or_default();
    assert!(explanation.ends_with(&format!("/errors/{code}")), "{body}");
    json!({
        "@context": "/api/contexts/Error",
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": body["hydra:description"],
        "type": explanation,
        "title": body["title"],
        "status": status,
        "detail": body["detail"],
        "code": code,
        "retryable": false,
        "requestId": answer.header("x-request-id"),
    })
}
