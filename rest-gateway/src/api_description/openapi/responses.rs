//! Successful responses, and references to the headers of responses.

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
    let schema = schemas::of_response(&operation.returns);
    let media_types = match &operation.returns {
        Returns::Nothing => vec![],
        Returns::Document(media_type, _) => vec![media_type.as_str()],
        Returns::Text(media_types) => media_types.iter().map(String::as_str).collect(),
        Returns::Health => vec!["text/plain"],
        _ => vec!["application/ld+json", "application/json"],
    };
    let example = examples.get(&operation.operation_id);
    let content: Map<_, _> = media_types
        .into_iter()
        .map(|media_type| {
            let mut content = json!({"schema": schema});
            if let Some(example) = example {
                content["example"] = example.clone();
            }
            (media_type.to_owned(), content)
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
    if operation.has_parameter("Accept-Language") {
        header_names.push("Content-Language");
    }
    let mut response = json!({
        "description": description(&operation.returns),
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

fn description(returns: &Returns) -> String {
    match returns {
        Returns::Resource(class) => class.description.clone(),
        Returns::Created(class) => format!("Created. {}", class.description),
        Returns::Preview(class) => format!("The delivery is valid. {}", class.description),
        Returns::Collection(class) => format!("A page of a list of `{}`.", class.name),
        Returns::Nothing => "The operation succeeded.".to_owned(),
        Returns::Health => "The check succeeded.".to_owned(),
        Returns::JsonLd(_) | Returns::Document(..) | Returns::Text(_) => "The document.".to_owned(),
    }
}

/// References to the named headers and to those of every response. `Retry-After-Optional` describes
/// `Retry-After` where it may be absent.
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
