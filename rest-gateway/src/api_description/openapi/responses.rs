//! Successful responses, and the headers of every response.

use serde_json::{Map, Value, json};

use super::{links, schemas};
use crate::api_description::{
    operations::{Auth, Operation, Returns},
    parse_json,
};

/// Example bodies by operation ID: recorded by an end-to-end test, or, where responses change in the
/// background or describe the API itself, written by hand.
pub(super) fn examples() -> Map<String, Value> {
    let mut examples: Map<_, _> = parse_json(include_str!("examples.json"));
    let unrecorded: Map<_, _> = parse_json(include_str!("unrecorded_examples.json"));
    examples.extend(unrecorded);
    examples
}

/// The response of an operation that succeeds.
pub(super) fn success(operation: &Operation, examples: &Map<String, Value>) -> Value {
    let schema = schemas::of_response(operation.returns);
    let media_types: &[&str] = match operation.returns {
        Returns::Nothing => &[],
        Returns::Document(media_types, _) | Returns::Text(media_types) => media_types,
        Returns::Health => &["text/plain"],
        _ => &["application/ld+json", "application/json"],
    };
    let example = examples.get(operation.operation_id);
    let content: Map<_, _> = media_types
        .iter()
        .map(|media_type| {
            let mut content = json!({"schema": schema});
            if let Some(example) = example {
                content["example"] = example.clone();
            }
            ((*media_type).to_owned(), content)
        })
        .collect();

    let mut header_names = Vec::new();
    if matches!(operation.returns, Returns::Created(_)) {
        header_names.push("Location");
    }
    if operation.accepts_idempotency_key() {
        header_names.push("Idempotent-Replayed");
    }
    if operation.has_etag() {
        header_names.extend(["Cache-Control", "ETag"]);
    }
    if operation.auth == Auth::ClientCredentials {
        header_names.push("Cache-Control");
    }
    if operation
        .parameters
        .iter()
        .any(|parameter| parameter.name == "Accept-Language")
    {
        header_names.push("Content-Language");
    }
    let mut response = json!({
        "description": description(operation.returns),
        "headers": header_references(&header_names),
    });
    if !content.is_empty() {
        response["content"] = Value::Object(content);
    }
    let links = links::of(operation);
    if !links.is_empty() {
        response["links"] = Value::Object(links);
    }
    response
}

/// The response to a conditional request for an unchanged resource.
pub(super) fn not_modified() -> Value {
    json!({
        "description": "The resource is unchanged since the response with that `ETag`.",
        "headers": header_references(&["Cache-Control", "ETag"]),
    })
}

fn description(returns: Returns) -> String {
    match returns {
        Returns::Resource(class) => class.description.to_owned(),
        Returns::Created(class) => format!("Created. {}", class.description),
        Returns::Preview(class) => format!("The delivery is valid. {}", class.description),
        Returns::Collection(class) => format!("A page of a list of `{}`.", class.name),
        Returns::Nothing => "The operation succeeded.".to_owned(),
        Returns::Health => "The check succeeded.".to_owned(),
        Returns::JsonLd(_) | Returns::Document(..) | Returns::Text(_) => "The document.".to_owned(),
    }
}

/// Every header that responses refer to. `Retry-After-Optional` describes `Retry-After` where it may
/// be absent.
pub(super) fn headers() -> Value {
    let text = |description: &str, required: bool| {
        json!({
            "description": description,
            "required": required,
            "schema": {"type": "string"},
        })
    };
    let seconds = json!({
        "description": "Seconds to wait before the next request.",
        "required": true,
        "schema": {"type": "integer", "minimum": 1},
    });
    let mut optional_seconds = seconds.clone();
    optional_seconds["required"] = json!(false);
    json!({
        "Allow": text("The methods of the resource.", true),
        "Cache-Control": text("Whether the response may be cached.", true),
        "Content-Language": text("The language of the texts for people, such as the `label` of a time slot choice.", false),
        "ETag": text("The version of the resource. Send it as `If-None-Match` to get the resource only if it has changed.", true),
        "Idempotent-Replayed": text("`true` if this is the stored response to an earlier request with the same `Idempotency-Key`.", false),
        "Link": text("Link to the Hydra documentation.", true),
        "Location": text("The absolute URL of the new resource.", true),
        "RateLimit": text("The remaining quota, if rate limits apply (draft-ietf-httpapi-ratelimit-headers).", false),
        "RateLimit-Policy": text("The rate limits that apply.", false),
        "Retry-After": seconds,
        "Retry-After-Optional": optional_seconds,
        "WWW-Authenticate": text("The authentication scheme or the missing scope (RFC 6750).", true),
        "X-Request-Id": text("The ID of the request in the platform's logs; include it in support requests.", true),
    })
}

/// References to the named headers and to those of every response.
pub(super) fn header_references(names: &[&str]) -> Value {
    ["Link", "RateLimit", "RateLimit-Policy", "X-Request-Id"]
        .iter()
        .chain(names)
        .map(|name| {
            let reference = json!({"$ref": format!("#/components/headers/{name}")});
            let name = name.strip_suffix("-Optional").unwrap_or(name);
            (name.to_owned(), reference)
        })
        .collect()
}
