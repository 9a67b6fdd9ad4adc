//! The OpenAPI description of every operation: what may be sent, and every answer to it.

mod answers;
mod drafts;
mod errors;
mod examples;
mod headers;
mod parameters;
mod schemas;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    object,
    operations::{self, Expects, Needs, Operation, Returns},
};

/// What holds for every operation; Markdown.
const CONVENTIONS: &str = "\
Get an access token from `/oauth2/token` with your API key and secret, and send it as \
`Authorization: Bearer <access_token>`.

- **Bodies** are JSON-LD, `application/ld+json`; with `Accept: application/json` the same is \
labelled so. Members unknown here are ignored, and null is the same as absent.
- **Resources** are named by their `@id`, a path such as `/api/deliveries/<id>`. Store it as it is.
- **Instants** are written with an offset, in the store's time zone.
- **Errors** have one form, with a `code` for programs and a `type` that leads to its \
explanation. What breaks rules is told all at once, in `violations`.
- **Every answer** has an `X-Request-Id`: yours, if you send one.
- Every `GET` can be a `HEAD`, and `OPTIONS` tells which methods a path has.";

/// The document at `/api/docs.json`.
pub(crate) fn openapi(platform_name: &str, public_url: &str) -> Value {
    let examples = examples::Examples::read();
    let mut responses = errors::Responses::new(public_url);
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations::all() {
        if !tags.contains(&operation.subject) {
            tags.push(operation.subject);
        }
        let described = describe(operation, &examples, &mut responses);
        paths
            .entry(operation.path)
            .or_default()
            .insert(operation.method.to_ascii_lowercase(), described);
    }
    let tags: Vec<_> = tags.into_iter().map(|name| json!({"name": name})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("{platform_name} API"),
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Deliveries, their prices, their time slots, and what happens to them.",
            "description": CONVENTIONS,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "responses": responses.into_components(),
            "headers": headers::all(),
            "parameters": parameters::shared(),
            "securitySchemes": security_schemes(public_url),
        },
    })
}

fn describe(
    operation: &Operation,
    examples: &examples::Examples,
    responses: &mut errors::Responses,
) -> Value {
    let mut answers = Map::new();
    let status = operation.returns.status().to_string();
    answers.insert(status, answers::success(operation, examples));
    if operation.is_tagged() {
        let reference = json!({"$ref": "#/components/responses/not_modified"});
        answers.insert("304".to_owned(), reference);
    }
    for (status, codes) in operations::refusals(operation) {
        // A gateway that is ending says so itself.
        let answer = if matches!(operation.returns, Returns::Health) && status == 503 {
            responses.or_a_sentence(&codes)
        } else {
            responses.refer_to(&codes)
        };
        answers.insert(status.to_string(), answer);
    }
    if operation.needs == Needs::Credentials {
        answers.extend(errors::of_the_token_endpoint());
    }

    let mut described = object([
        ("operationId", json!(operation.id)),
        ("tags", json!([operation.subject])),
        ("summary", json!(operation.title)),
        ("security", security(operation.needs)),
        ("responses", Value::Object(answers)),
    ]);
    if !operation.about.is_empty() {
        described.insert("description".to_owned(), json!(operation.about));
    }
    let parameters = parameters::of(operation);
    if !parameters.is_empty() {
        described.insert("parameters".to_owned(), json!(parameters));
    }
    if let Some(body) = body(operation) {
        described.insert("requestBody".to_owned(), body);
    }
    Value::Object(described)
}

fn body(operation: &Operation) -> Option<Value> {
    let json_of = |schema: &Value, example: &Value| {
        let media_type = json!({"schema": schema, "example": example});
        json!({"application/ld+json": media_type, "application/json": media_type})
    };
    match operation.expects {
        Expects::Nothing => None,
        Expects::Resource(class, example) => Some(json!({
            "required": true,
            "content": json_of(&drafts::reference(class), &examples::parse(example)),
        })),
        Expects::Optional(class, example) => Some(json!({
            "required": false,
            "content": json_of(&drafts::reference(class), &examples::parse(example)),
        })),
        Expects::Empty => Some(json!({
            "required": false,
            "content": json_of(&json!({"type": "object"}), &json!({})),
        })),
        Expects::Form => Some(json!({
            "required": true,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": drafts::token_request(),
                    "example": {"grant_type": "client_credentials", "scope": "deliveries tasks"},
                },
            },
        })),
    }
}

fn security(needs: Needs) -> Value {
    match needs {
        Needs::Nothing => json!([]),
        // The key and the secret may also be in the form.
        Needs::Credentials => json!([{"credentials": []}, {}]),
        Needs::Token => json!([{"accessToken": []}]),
        Needs::Scope(scope) => json!([{"accessToken": [scope]}]),
    }
}

fn security_schemes(public_url: &str) -> Value {
    json!({
        "accessToken": {
            "type": "oauth2",
            "description": "An access token, sent as `Authorization: Bearer <access_token>`.",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": format!("{public_url}/oauth2/token"),
                    "scopes": {
                        "deliveries": "Create, read, list and cancel the store's deliveries; prices; time slots; the store.",
                        "tasks": "Read the store's tasks.",
                        "tasks:all": "Read and complete any task; for the platform's own programs.",
                    },
                },
            },
        },
        "credentials": {
            "type": "http",
            "scheme": "basic",
            "description": "The API key and its secret.",
        },
    })
}

#[cfg(test)]
mod tests;
