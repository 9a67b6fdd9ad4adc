//! The OpenAPI document: the requests and responses of every operation.

mod error_responses;
mod links;
mod parameters;
mod request_schemas;
mod responses;
mod schemas;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(crate) use self::error_responses::{error_example, violation_example};
use super::{
    operations::{self, Auth, Expects, Operation, Returns},
    parse_json,
};

/// Conventions of every operation, in Markdown.
const CONVENTIONS: &str = "\
Get an access token from `/oauth2/token` with your API key and secret, and send it as \
`Authorization: Bearer <access_token>`.

- **Bodies** are JSON-LD, `application/ld+json`; with `Accept: application/json`, the same body \
has that media type. Unknown members are ignored, and null is the same as absent.
- **Query parameters** that are unknown are violations.
- **Resources** are identified by their `@id`, a path such as `/api/deliveries/<id>`. Store it \
unchanged.
- **Instants** have an offset and are in the store's time zone.
- **Errors** have one form, with a `code` for programs and a `type` that links to its \
explanation. `violations` lists everything invalid in a request at once.
- **Every response** has an `X-Request-Id`: the value from the request, or else a new one.
- Every `GET` has a `HEAD`, and `OPTIONS` lists the methods of a path.
- A request that is not well-formed HTTP is answered 400, 414 or 431, and its connection is closed.";

/// The document at `/api/docs.json`.
pub(crate) fn openapi(platform_name: &str, public_url: &str) -> Value {
    let examples = responses::examples();
    let mut shared_responses = Map::new();
    shared_responses.insert("not_modified".to_owned(), responses::not_modified());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations::all() {
        if !tags.contains(&operation.tag) {
            tags.push(operation.tag);
        }
        let described = describe(operation, &examples, public_url, &mut shared_responses);
        paths
            .entry(operation.path)
            .or_default()
            .insert(operation.method.to_ascii_lowercase(), described);
    }
    let tags: Vec<_> = tags
        .into_iter()
        .map(|name| json!({"name": name, "description": tag_description(name)}))
        .collect();
    let mut schemas = schemas::all();
    schemas.extend(request_schemas::all());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("{platform_name} API"),
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Deliveries with their prices, time slots, events and webhooks.",
            "description": CONVENTIONS,
            "contact": {"name": format!("{platform_name} API"), "url": format!("{public_url}/api/docs")},
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks::all(platform_name),
        "x-signature-vectors": webhooks::signature_vectors(),
        "components": {
            "schemas": schemas,
            "responses": shared_responses,
            "headers": responses::headers(),
            "parameters": parameters::shared(),
            "securitySchemes": security_schemes(public_url),
        },
    })
}

fn tag_description(tag: &str) -> &'static str {
    match tag {
        "Access tokens" => {
            "OAuth 2.0 client credentials: get an access token with an API key and its secret."
        }
        "Deliveries" => "A delivery has a pickup task and a dropoff task.",
        "Tasks" => "The two stops of a delivery.",
        "Retail prices" => "Prices, calculated before the delivery is created.",
        "Time slots" => "The windows that a store offers for dropoffs.",
        "Webhooks" => "Subscriptions to events, and the requests that they cause.",
        "Notifications" => "What was sent to a webhook, with each attempt.",
        "Events" => "The event log of a store, numbered without gaps.",
        "Stores" => "The calling client, its store and the platform.",
        _ => "The documents of the API, and health checks.",
    }
}

fn describe(
    operation: &Operation,
    examples: &Map<String, Value>,
    public_url: &str,
    shared_responses: &mut Map<String, Value>,
) -> Value {
    let mut responses = Map::new();
    let status = operation.returns.status().to_string();
    responses.insert(status, responses::success(operation, examples));
    if operation.has_etag() {
        let reference = json!({"$ref": "#/components/responses/not_modified"});
        responses.insert("304".to_owned(), reference);
    }
    for (status, codes) in operations::error_codes_by_status(operation) {
        // A draining gateway answers `/readyz` itself, in plain text.
        let response = if matches!(operation.returns, Returns::Health) && status == 503 {
            error_responses::with_plain_text(&codes, public_url)
        } else {
            error_responses::reference(&codes, public_url, shared_responses)
        };
        responses.insert(status.to_string(), response);
    }
    if operation.auth == Auth::ClientCredentials {
        responses.extend(error_responses::token_errors());
    }

    let mut described = json!({
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "security": security(operation.auth),
        "responses": responses,
    });
    let parameters = parameters::of(operation);
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(body) = request_body(operation) {
        described["requestBody"] = body;
    }
    described
}

fn request_body(operation: &Operation) -> Option<Value> {
    let json_content = |schema: &Value, example: &Value| {
        let media_type = json!({"schema": schema, "example": example});
        json!({"application/ld+json": media_type, "application/json": media_type})
    };
    match operation.expects {
        Expects::Nothing => None,
        Expects::Resource(class, example) | Expects::Optional(class, example) => Some(json!({
            "required": matches!(operation.expects, Expects::Resource(..)),
            "content": json_content(&request_schemas::reference(class), &parse_json(example)),
        })),
        Expects::EmptyObject => Some(json!({
            "required": false,
            "content": json_content(&schemas::named("EmptyObject"), &json!({})),
        })),
        Expects::Form => Some(json!({
            "required": true,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": schemas::named("TokenRequest"),
                    "example": {"grant_type": "client_credentials", "scope": "deliveries tasks"},
                },
            },
        })),
    }
}

fn security(auth: Auth) -> Value {
    match auth {
        Auth::None => json!([]),
        // `{}` permits a request without HTTP Basic: the form can contain the key and the secret.
        Auth::ClientCredentials => json!([{"credentials": []}, {}]),
        Auth::Token | Auth::StoreToken => json!([{"accessToken": []}]),
        Auth::Scope(scope) => json!([{"accessToken": [scope]}]),
    }
}

/// The scopes of the REST API, and what each permits.
pub(crate) const SCOPES: &[(&str, &str)] = &[
    (
        "deliveries",
        "Create, read, list and cancel the store's deliveries; calculate prices; read time slots \
            and the store.",
    ),
    ("tasks", "Read the store's tasks."),
    (
        "tasks:all",
        "Read and complete any task; for the platform's own programs.",
    ),
];

fn security_schemes(public_url: &str) -> Value {
    json!({
        "accessToken": {
            "type": "oauth2",
            "description": "An access token, sent as `Authorization: Bearer <access_token>`.",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": format!("{public_url}/oauth2/token"),
                    "scopes": SCOPES.iter().copied().collect::<BTreeMap<_, _>>(),
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
