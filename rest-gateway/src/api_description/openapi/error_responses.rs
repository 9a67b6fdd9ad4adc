//! Error responses: one component per set of error codes with the same status.

use http::StatusCode;
use proto::RuleOutcome;
use serde_json::{Map, Value, json};

use super::{references::named, responses::header_references};
use crate::{
    api_description::parse_json,
    error::{Details, Error},
    representation::{
        error_codes::{self as codes, ErrorCode},
        problem::Problem,
    },
};

/// A reference to the response with one of these codes, which is added to the components.
pub(super) fn reference(
    codes: &[&'static ErrorCode],
    public_url: &str,
    components: &mut Map<String, Value>,
) -> Value {
    let names: Vec<_> = codes.iter().map(|code| code.code).collect();
    let name = names.join("-or-");
    let reference = json!({"$ref": format!("#/components/responses/{name}")});
    components
        .entry(name)
        .or_insert_with(|| describe(codes, public_url));
    reference
}

/// The response with one of these codes, or with plain text.
pub(super) fn with_plain_text(codes: &[&'static ErrorCode], public_url: &str) -> Value {
    let mut described = describe(codes, public_url);
    described["content"]["text/plain"] = json!({"schema": {"type": "string"}});
    described["headers"] = header_references(&["Retry-After-Optional"]);
    described
}

fn describe(codes: &[&'static ErrorCode], public_url: &str) -> Value {
    let lines: Vec<_> = codes
        .iter()
        .map(|code| format!("`{}`: {}", code.code, code.meaning))
        .collect();
    let examples: Map<_, _> = codes
        .iter()
        .map(|code| {
            let example = json!({"summary": code.title, "value": error_example(code, public_url)});
            (code.code.to_owned(), example)
        })
        .collect();
    let media_type = json!({"schema": named("Problem"), "examples": examples});
    let status = codes.first().map_or(500, |code| code.status.as_u16());
    json!({
        "description": lines.join("\n\n"),
        "headers": header_references(status_headers(status)),
        "content": {
            "application/ld+json": media_type,
            "application/json": media_type,
            "application/problem+json": media_type,
        },
    })
}

fn status_headers(status: u16) -> &'static [&'static str] {
    match status {
        401 | 403 => &["WWW-Authenticate"],
        405 => &["Allow"],
        409 => &["Retry-After-Optional"],
        429 | 503 => &["Retry-After"],
        _ => &[],
    }
}

/// An example of the error's body.
pub(crate) fn error_example(code: &'static ErrorCode, public_url: &str) -> Value {
    let details = match code.status {
        _ if *code == codes::PRICE_NOT_CALCULATED => Details::Calculation(vec![RuleOutcome {
            rule: "Near".to_owned(),
            matched: false,
            reason: "distance <= 3000 is false".to_owned(),
            amount: 0,
        }]),
        _ if *code == codes::EXTERNAL_REFERENCE_TAKEN => {
            Details::Existing("deliveries/01932e5c-9f4a-7000-8000-000000000001".to_owned())
        }
        StatusCode::BAD_REQUEST => {
            let is_mismatch = *code == codes::PRICE_MISMATCH;
            let violation = violation_example(if is_mismatch { "differs" } else { "required" });
            let violation = violation.and_then(|violation| serde_json::from_value(violation).ok());
            Details::Violations(violation.into_iter().collect())
        }
        _ => Details::None,
    };
    let error = Error::new(code, code.meaning).with(details);
    let request_id = "01932e5c-9f4a-7000-8000-0000000000ff";
    json!(Problem::new(&error, request_id, public_url))
}

/// An example of a violation or a warning with this code, recorded by an end-to-end test.
pub(crate) fn violation_example(code: &str) -> Option<Value> {
    parse_json::<Map<_, _>>(include_str!("violation_examples.json")).remove(code)
}
