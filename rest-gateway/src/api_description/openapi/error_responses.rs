//! Error responses: one component per set of error codes with the same status.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::responses::{header_references, not_modified};
use crate::error_codes::{self as codes, ErrorCode};

/// The components referenced so far.
pub(super) struct ErrorResponses<'u> {
    public_url: &'u str,
    components: Map<String, Value>,
}

impl<'u> ErrorResponses<'u> {
    pub(super) fn new(public_url: &'u str) -> Self {
        Self {
            public_url,
            components: Map::new(),
        }
    }

    /// A reference to the response with one of these codes.
    pub(super) fn reference(&mut self, codes: &[&ErrorCode]) -> Value {
        let name = codes
            .iter()
            .map(|code| code.code)
            .collect::<Vec<_>>()
            .join("-or-");
        let reference = json!({"$ref": format!("#/components/responses/{name}")});
        self.components
            .entry(name)
            .or_insert_with(|| describe(codes, self.public_url));
        reference
    }

    /// The response with one of these codes, or with plain text.
    pub(super) fn with_plain_text(&self, codes: &[&ErrorCode]) -> Value {
        let mut described = describe(codes, self.public_url);
        described["content"]["text/plain"] = json!({"schema": {"type": "string"}});
        described["headers"] = header_references(&["Retry-After-Optional"]);
        described
    }

    pub(super) fn into_components(mut self) -> Value {
        // Responses to requests that match no operation, or are rejected before.
        for code in [
            &codes::NOT_FOUND,
            &codes::METHOD_NOT_ALLOWED,
            &codes::URI_TOO_LONG,
            &codes::HEADERS_TOO_LARGE,
        ] {
            self.reference(&[code]);
        }
        self.components
            .insert("not_modified".to_owned(), not_modified());
        Value::Object(self.components)
    }
}

fn describe(codes: &[&ErrorCode], public_url: &str) -> Value {
    let lines: Vec<_> = codes
        .iter()
        .map(|code| format!("`{}`: {}", code.code, code.meaning))
        .collect();
    let examples: Map<_, _> = codes
        .iter()
        .map(|code| {
            let example = json!({"summary": code.title, "value": example(code, public_url)});
            (code.code.to_owned(), example)
        })
        .collect();
    let mut schemas: Vec<&str> = codes.iter().map(|code| schema_name(code)).collect();
    schemas.dedup();
    let schemas: Vec<_> = schemas
        .iter()
        .map(|name| {
            json!({"$ref": format!("#/components/schemas/{name}"), "required": ["@context"]})
        })
        .collect();
    let schema = match &schemas[..] {
        [schema] => schema.clone(),
        several => json!({"anyOf": several}),
    };
    let media_type = json!({"schema": schema, "examples": examples});
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

/// Whether the error lists violations: every 400 except that of a delivery without a price.
fn has_violations(code: &ErrorCode) -> bool {
    code.status == StatusCode::BAD_REQUEST && *code != codes::PRICE_NOT_CALCULATED
}

fn schema_name(code: &ErrorCode) -> &'static str {
    if has_violations(code) {
        "ConstraintViolationList"
    } else {
        "Error"
    }
}

fn example(code: &ErrorCode, public_url: &str) -> Value {
    let mut example = json!({
        "@context": format!("/api/contexts/{}", schema_name(code)),
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": code.meaning,
        "type": format!("{public_url}/errors/{}", code.code),
        "title": code.title,
        "status": code.status.as_u16(),
        "detail": code.meaning,
        "code": code.code,
        "retryable": code.retryable,
        "requestId": "01932e5c-9f4a-7000-8000-0000000000ff",
    });
    if has_violations(code) {
        let lines = "dropoff.before: is required";
        example["@type"] = json!("ConstraintViolationList");
        example["hydra:description"] = json!(lines);
        example["detail"] = json!(lines);
        example["violations"] = json!([{
            "propertyPath": "dropoff.before",
            "message": "is required",
            "code": "required",
        }]);
    }
    if *code == codes::PRICE_NOT_CALCULATED {
        example["calculation"] = json!([{
            "rule": "Near",
            "matched": false,
            "reason": "distance <= 3000 is false",
            "amount": 0,
        }]);
    }
    example
}

/// The errors of the token endpoint (RFC 6749 §5.2).
pub(super) fn token_errors() -> Map<String, Value> {
    let response = |names: &[&str], description: &str, error: &str, message: &str| {
        let mut names = names.to_vec();
        names.push("Cache-Control");
        json!({
            "description": description,
            "headers": header_references(&names),
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/TokenError"},
                    "example": {
                        "error": error,
                        "error_description": message,
                        "message": message,
                    },
                },
            },
        })
    };
    Map::from_iter([
        (
            "400".to_owned(),
            response(
                &[],
                "`invalid_request`, `invalid_scope` or `unsupported_grant_type`: the request \
                 is invalid.",
                "invalid_request",
                "grant_type is missing; it must be client_credentials",
            ),
        ),
        (
            "401".to_owned(),
            response(
                &["WWW-Authenticate"],
                "`invalid_client`: the key is unknown or disabled, or the secret is wrong.",
                "invalid_client",
                "the client is unknown, disabled, or its secret is wrong",
            ),
        ),
    ])
}
