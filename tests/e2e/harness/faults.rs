//! What a table of cases finds wrong, told all at once; and what the form of failures demands.

use std::fmt::{Debug, Display};

use serde_json::{Value, json};

use super::Answer;

/// The members of every failure, in the order of the alphabet.
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

/// Longer than any answer to a mistake has to be, however long the mistake.
const LONGEST_FAILURE: usize = 20_000;

/// Collects the faults of many cases.
#[derive(Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Two values of a case must be equal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "mostly called with temporaries"
    )]
    pub(crate) fn equal<T: PartialEq + Debug>(&mut self, case: impl Display, got: T, expected: T) {
        if got != expected {
            self.0
                .push(format!("{case}: got {got:?}, expected {expected:?}"));
        }
    }

    /// A condition of a case must hold.
    pub(crate) fn holds(&mut self, case: impl Display, condition: bool, otherwise: impl Display) {
        if !condition {
            self.0.push(format!("{case}: {otherwise}"));
        }
    }

    /// The answer must be a failure with this status in the error form.
    pub(crate) fn failure(&mut self, case: impl Display, answer: &Answer, status: u16) {
        let faults = form_faults(answer, status);
        self.all(case, answer, &faults);
    }

    /// The answer must be a 400 in the error form with a violation at, or below, each of these
    /// property paths and nowhere else.
    pub(crate) fn violations(&mut self, case: impl Display, answer: &Answer, paths: &[&str]) {
        let mut faults = form_faults(answer, 400);
        faults.extend(violation_faults(answer));
        let violated = answer.violated();
        for path in paths {
            if !violated
                .iter()
                .any(|violated| is_at_or_below(violated, path))
            {
                faults.push(format!("no violation at {path}"));
            }
        }
        for violated in violated {
            if !paths.iter().any(|path| is_at_or_below(violated, path)) {
                faults.push(format!("a violation at {violated}"));
            }
        }
        self.all(case, answer, &faults);
    }

    /// Fails if there is any fault, and tells all of them.
    #[track_caller]
    pub(crate) fn none(self) {
        assert!(
            self.0.is_empty(),
            "{} faults:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }

    fn all(&mut self, case: impl Display, answer: &Answer, faults: &[String]) {
        if !faults.is_empty() {
            let body: String = String::from_utf8_lossy(&answer.body)
                .chars()
                .take(900)
                .collect();
            let faults = faults.join("; ");
            self.0
                .push(format!("{case}: {faults}\n    {} {body}", answer.status));
        }
    }
}

/// What keeps an answer from being a failure in the error form.
fn form_faults(answer: &Answer, status: u16) -> Vec<String> {
    let mut faults = Vec::new();
    if answer.status != status {
        faults.push(format!("status {}, expected {status}", answer.status));
    }
    let content_type = answer.header("content-type");
    if !content_type.starts_with("application/ld+json") {
        faults.push(format!("content type {content_type:?}"));
    }
    let json = &answer.json;
    for member in MEMBERS {
        let value = &json[member];
        let is_sound = match member {
            "status" => *value == json!(answer.status),
            "retryable" => value.is_boolean(),
            _ => value.as_str().is_some_and(|text| !text.is_empty()),
        };
        if !is_sound {
            faults.push(format!("{member}: {value}"));
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
        faults.push(format!("@type {} of {}", json["@type"], json["@context"]));
    }
    if json["requestId"] != json!(answer.header("x-request-id")) {
        faults.push("requestId is not X-Request-Id".to_owned());
    }
    let code = json["code"].as_str().unwrap_or_default();
    let problem_type = json["type"].as_str().unwrap_or_default();
    if !problem_type.ends_with(&format!("/errors/{code}")) {
        faults.push(format!("type {problem_type} of code {code}"));
    }
    let text = String::from_utf8_lossy(&answer.body);
    for internal in ["panicked", ".rs:", "sea_orm", "sqlx", "SELECT ", "INSERT "] {
        if text.contains(internal) {
            faults.push(format!("internal text {internal:?}"));
        }
    }
    if answer.body.len() > LONGEST_FAILURE {
        faults.push(format!("{} bytes long", answer.body.len()));
    }
    faults
}

/// What keeps the violations from having their form.
fn violation_faults(answer: &Answer) -> Vec<String> {
    let Some(violations) = answer.json["violations"].as_array() else {
        return vec!["no violations".to_owned()];
    };
    let mut faults = Vec::new();
    for violation in violations {
        let members: Vec<_> = violation
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| value.as_str().is_some_and(|text| !text.is_empty()))
            .map(|(member, _)| member.as_str())
            .collect();
        if members != ["code", "message", "propertyPath"] {
            faults.push(format!("violation {violation}"));
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
    if answer.json["hydra:description"] != json!(lines.join("\n")) {
        faults.push("hydra:description is not one `propertyPath: message` a line".to_owned());
    }
    faults
}

fn text<'a>(violation: &'a Value, member: &str) -> &'a str {
    violation[member].as_str().unwrap_or_default()
}

fn is_at_or_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
