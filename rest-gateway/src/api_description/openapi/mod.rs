//! The OpenAPI document: the requests and responses of every operation, in a frame of texts,
//! `document.json`.

mod error_responses;
mod links;
mod members;
mod parameters;
mod references;
mod responses;
mod schemas;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(crate) use self::error_responses::{error_example, violation_example};
use self::references::{Form, named, reference};
use super::{
    Class,
    operations::{self, Auth, Expects, Operation, Returns},
    parse_json,
};

/// The scopes of the REST API; `document.json` says what each permits.
pub(crate) const SCOPES: [&str; 3] = ["deliveries", "tasks", "tasks:all"];

/// The document at `/api/docs.json`.
pub(crate) fn openapi(platform_name: &str, public_url: &str) -> Value {
    let examples = responses::examples();
    let mut shared_responses = Map::new();
    shared_responses.insert("not_modified".to_owned(), responses::not_modified());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operations::all() {
        let described = describe(operation, &examples, public_url, &mut shared_responses);
        paths
            .entry(&operation.path)
            .or_default()
            .insert(operation.method.to_ascii_lowercase(), described);
    }
    let mut schemas: Map<_, _> = parse_json(include_str!("schemas.json"));
    schemas.extend(schemas::all());

    let mut document: Value = parse_json(include_str!("document.json"));
    let title = format!("{platform_name} API");
    document["info"]["title"] = json!(title);
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    document["info"]["description"] = json!(include_str!("conventions.md").trim_end());
    document["info"]["contact"] = json!({"name": title, "url": format!("{public_url}/api/docs")});
    document["servers"] = json!([{"url": public_url}]);
    document["paths"] = json!(paths);
    document["webhooks"] = Value::Object(webhooks::all(platform_name));
    document["x-signature-vectors"] = parse_json(include_str!("signature_vectors.json"));
    let components = &mut document["components"];
    components["schemas"] = Value::Object(schemas);
    components["responses"] = Value::Object(shared_responses);
    let token_url = format!("{public_url}/oauth2/token");
    components["securitySchemes"]["accessToken"]["flows"]["clientCredentials"]["tokenUrl"] =
        json!(token_url);
    document
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
        // As RFC 6749 §5.2 defines them.
        responses.extend(parse_json::<Map<_, _>>(include_str!("token_errors.json")));
    }

    let mut described = json!({
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "security": security(&operation.auth),
        "responses": responses,
    });
    let parameters = parameters::of(operation);
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(body) = request_body(operation.expects) {
        described["requestBody"] = body;
    }
    described
}

fn request_body(expects: Expects) -> Option<Value> {
    let json_body = |is_required: bool, schema: &Value, example: &Value| {
        let media_type = json!({"schema": schema, "example": example});
        let content = json!({"application/ld+json": media_type, "application/json": media_type});
        json!({"required": is_required, "content": content})
    };
    let of_class = |is_required, class: &Class| {
        json_body(is_required, &reference(class, Form::Draft), &class.example)
    };
    match expects {
        Expects::Nothing => None,
        Expects::Resource(class) => Some(of_class(true, class)),
        Expects::Optional(class) => Some(of_class(false, class)),
        Expects::EmptyObject => Some(json_body(false, &named("EmptyObject"), &json!({}))),
        Expects::Form => Some(json!({
            "required": true,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": named("TokenRequest"),
                    "example": {"grant_type": "client_credentials", "scope": "deliveries tasks"},
                },
            },
        })),
    }
}

fn security(auth: &Auth) -> Value {
    match auth {
        Auth::None => json!([]),
        // `{}` permits a request without HTTP Basic: the form can contain the key and the secret.
        Auth::ClientCredentials => json!([{"credentials": []}, {}]),
        Auth::Token | Auth::StoreToken => json!([{"accessToken": []}]),
        Auth::Scope(scope) => json!([{"accessToken": [scope]}]),
    }
}

#[cfg(test)]
mod tests;
