//! The OpenAPI document: the requests and responses of every operation, in a frame of texts,
//! `document.json`.

mod members;
mod responses;
mod schemas;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(crate) use self::responses::{error_example, violation_example};
use self::schemas::{SchemaForm, named, reference};
use super::{
    classes::Class,
    operations::{self, Auth, Expects, Operation, Parameter, Returns, parameter},
    parse_json,
};
use crate::representation::media_type::MERGE_PATCH;

/// The scopes of the REST API; `document.json` says what each permits.
pub(crate) const SCOPES: [&str; 6] = [
    "courier",
    "deliveries",
    "dispatch",
    "dispatch:read",
    "tasks",
    "tasks:all",
];

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
    document["webhooks"] = Value::Object(webhooks(platform_name));
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
        let response = match (&operation.returns, status) {
            // A draining gateway answers `/readyz` itself, in plain text.
            (Returns::Health, 503) => responses::error_with_plain_text(&codes, public_url),
            (Returns::Page, 404 | 410) => responses::error_with_page(&codes, public_url),
            _ => responses::error_reference(&codes, public_url, shared_responses),
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
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(mut body) = request_body(operation.expects) {
        if operation.method == "PATCH" {
            body["content"][MERGE_PATCH] = body["content"]["application/json"].clone();
        }
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
        json_body(
            is_required,
            &reference(class, SchemaForm::Draft),
            &class.example,
        )
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
        Expects::Image => Some(json!({
            "required": true,
            "content": {"multipart/form-data": {"schema": named("ImageUpload")}},
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
        Auth::AnyScope(scopes) => scopes
            .iter()
            .map(|scope| json!({"accessToken": [scope]}))
            .collect(),
    }
}

/// The parameters of an operation.
fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| parameter(name).expect("a test finds every parameter that a path names"));
    let all = in_path.chain(operation.parameters.iter().copied());
    let if_none_match = json!({"$ref": "#/components/parameters/If-None-Match"});
    let conditional = operation.has_etag().then_some(if_none_match);
    all.map(describe_parameter).chain(conditional).collect()
}

fn describe_parameter(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        "schema": parameter.schema,
    });
    if parameter.is_repeatable {
        described["style"] = json!("form");
        described["explode"] = json!(true);
        described["schema"] = json!({"type": "array", "items": described["schema"]});
    }
    if parameter.location == "path" {
        described["required"] = json!(true);
    }
    described
}

/// The request that a webhook gets for each event: `webhook.json`, with what depends on the event and the
/// platform. It is `x-internal`: openapi-generator would make functions that send it to the API.
fn webhooks(platform_name: &str) -> Map<String, Value> {
    let signature = format!("X-{platform_name}-Signature");
    let rules = include_str!("webhooks.md").trim_end();
    let events: Map<_, _> = parse_json(include_str!("webhook_events.json"));
    let requests = events.into_iter().map(|(event, texts)| {
        let mut request: Value = parse_json(include_str!("webhook.json"));
        request["operationId"] = texts["operationId"].clone();
        request["summary"] = texts["summary"].clone();
        request["description"] = json!(rules.replace("{signature}", &signature));
        request["parameters"][0]["name"] = json!(signature);
        let content = &mut request["requestBody"]["content"]["application/json"];
        content["example"]["data"]["event"] = json!(event);
        (event, json!({"post": request}))
    });
    requests.collect()
}

#[cfg(test)]
mod tests;
