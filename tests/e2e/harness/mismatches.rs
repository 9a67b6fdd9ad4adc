//! Mismatches of a table of cases, reported all at once; and checks of the error format.

use std::fmt::{Debug, Display};

use serde_json::{Value, json};

use super::Response;

/// The members of every error, in alphabetical order.
const MEMBERS: [&str; 11] = [
    "@context",
    "@type",
    "code",
    "detail",
    "hydra:description",
    "hydra:title",
    "requestId",
    "retryable",
    "status",
    "title",
    "type",
];

/// The media type of JSON-LD documents.
pub(super) const JSON_LD: &str = "application/ld+json; charset=utf-8";

/// Bytes. The limit of an error body, however long the invalid value in the request.
const MAX_ERROR_SIZE: usize = 20_000;

/// Collects the mismatches of many cases.
#[derive(Default)]
pub(crate) struct Mismatches(Vec<String>);

impl Mismatches {
    /// Compares two values of a case.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "mostly called with temporaries"
    )]
    pub(crate) fn check_eq<T: PartialEq + Debug>(
        &mut self,
        case: impl Display,
        got: T,
        expected: T,
    ) {
        if got != expected {
            self.0
                .push(format!("{case}: got {got:?}, expected {expected:?}"));
        }
    }

    /// Checks a condition of a case.
    pub(crate) fn check(&mut self, case: impl Display, condition: bool, message: impl Display) {
        if !condition {
            self.0.push(format!("{case}: {message}"));
        }
    }

    /// Checks that the response is an error with this status in the error format.
    pub(crate) fn check_error(&mut self, case: impl Display, response: &Response, status: u16) {
        let mismatches = error_mismatches(response, status);
        self.extend(case, response, &mismatches);
    }

    /// Checks that the response is a 400 in the error format with a violation at, or below, each
    /// of these property paths and no other.
    pub(crate) fn check_violations(
        &mut self,
        case: impl Display,
        response: &Response,
        paths: &[&str],
    ) {
        let mut mismatches = error_mismatches(response, 400);
        mismatches.extend(violation_mismatches(response));
        let violated = response.violation_paths();
        for path in paths {
            if !violated
                .iter()
                .any(|violated| is_at_or_below(violated, path))
            {
                mismatches.push(format!("no violation at {path}"));
            }
        }
        for violated in violated {
            if !paths.iter().any(|path| is_at_or_below(violated, path)) {
                mismatches.push(format!("a violation at {violated}"));
            }
        }
        self.extend(case, response, &mismatches);
    }

    /// Fails if there is any mismatch, and lists all of them.
    #[track_caller]
    pub(crate) fn assert_none(self) {
        assert!(
            self.0.is_empty(),
            "{} mismatches:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }

    fn extend(&mut self, case: impl Display, response: &Response, mismatches: &[String]) {
        if !mismatches.is_empty() {
            let body: String = String::from_utf8_lossy(&response.body)
                .chars()
                .take(900)
                .collect();
            let mismatches = mismatches.join("; ");
            self.0.push(format!(
                "{case}: {mismatches}\n    {} {body}",
                response.status
            ));
        }
    }
}

/// How a response differs from the error format.
pub(super) fn error_mismatches(response: &Response, status: u16) -> Vec<String> {
    let mut mismatches = Vec::new();
    if response.status != status {
        mismatches.push(format!("status {}, expected {status}", response.status));
    }
    let content_type = response.header("content-type");
    if content_type != JSON_LD {
        mismatches.push(format!("content type {content_type:?}"));
    }
    let json = &response.json;
    let members = json.as_object().into_iter().flatten();
    for (member, _) in members {
        let is_optional = ["violations", "warnings"].contains(&member.as_str());
        if !MEMBERS.contains(&member.as_str()) && !is_optional {
            mismatches.push(format!("the member {member}"));
        }
    }
    for member in MEMBERS {
        let value = &json[member];
        let is_valid = match member {
            "status" => *value == json!(response.status),
            "retryable" => value.is_boolean(),
            "hydra:title" => *value == "An error occurred",
            _ => value.as_str().is_some_and(|text| !text.is_empty()),
        };
        if !is_valid {
            mismatches.push(format!("{member}: {value}"));
        }
    }
    let kind = if json.get("violations").is_some() {
        (
            "/api/contexts/ConstraintViolationList",
            "ConstraintViolationList",
        )
    } else {
        ("/api/contexts/Error", "hydra:Error")
    };
    if (&json["@context"], &json["@type"]) != (&json!(kind.0), &json!(kind.1)) {
        mismatches.push(format!("@type {} of {}", json["@type"], json["@context"]));
    }
    if json["requestId"] != json!(response.header("x-request-id")) {
        mismatches.push("requestId is not X-Request-Id".to_owned());
    }
    let code = json["code"].as_str().unwrap_or_default();
    let problem_type = json["type"].as_str().unwrap_or_default();
    if !problem_type.ends_with(&format!("/errors/{code}")) {
        mismatches.push(format!("type {problem_type} of code {code}"));
    }
    let text = String::from_utf8_lossy(&response.body);
    for internal in ["panicked", ".rs:", "sea_orm", "sqlx", "SELECT ", "INSERT "] {
        if text.contains(internal) {
            mismatches.push(format!("internal text {internal:?}"));
        }
    }
    if response.body.len() > MAX_ERROR_SIZE {
        mismatches.push(format!("{} bytes long", response.body.len()));
    }
    mismatches
}

/// How the violations differ from their format.
pub(super) fn violation_mismatches(response: &Response) -> Vec<String> {
    let Some(violations) = response.json["violations"].as_array() else {
        return vec!["no violations".to_owned()];
    };
    let mut mismatches = Vec::new();
    for violation in violations {
        let members: Vec<_> = violation
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| value.as_str().is_some_and(|text| !text.is_empty()))
            .map(|(member, _)| member.as_str())
            .collect();
        if members != ["code", "message", "propertyPath"] || text(violation, "code").contains(' ') {
            mismatches.push(format!("violation {violation}"));
        }
    }
    let lines: Vec<_> = violations
        .iter()
        .map(|violation| {
            format!(
                "{}: {}",
                text(violation, "propertyPath"),
                text(violation, "message")
            )
        })
        .collect();
    if response.json["hydra:description"] != json!(lines.join("\n")) {
        mismatches.push("hydra:description is not one `propertyPath: message` per line".to_owned());
    }
    mismatches
}

fn text<'a>(violation: &'a Value, member: &str) -> &'a str {
    violation[member].as_str().unwrap_or_default()
}

fn is_at_or_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
