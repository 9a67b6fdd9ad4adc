//! The responses of an operation: the one of success, with the links to operations that take its ids, and
//! those of errors, one component per set of error codes with the same status.

use http::StatusCode;
use proto::RuleOutcome;
use serde_json::{Map, Value, json};

use super::schemas::{self, named};
use crate::{
    api_description::{
        classes::{self, Class, Range},
        operations::{self, Auth, HydraTarget, Operation, Returns},
        parse_json,
    },
    error::{Details, Error},
    representation::{
        error_codes::{self as codes, ErrorCode},
        language::ENGLISH,
        problem::Problem,
    },
};

/// Example bodies by operation ID: recorded by an end-to-end test, or, where responses change in the
/// background or describe the API itself, written by hand.
pub(super) fn examples() -> Map<String, Value> {
    let mut examples: Map<_, _> = parse_json(include_str!("examples.json"));
    let unrecorded: Map<_, _> = parse_json(include_str!("unrecorded_examples.json"));
    examples.extend(unrecorded);
    examples
}

pub(super) fn success(operation: &Operation, examples: &Map<String, Value>) -> Value {
    let schema = schemas::of_response(&operation.returns);
    let media_types = match &operation.returns {
        Returns::Nothing => vec![],
        Returns::Document(media_type, _) => vec![media_type.as_str()],
        Returns::Text(media_types) | Returns::Image(media_types) => {
            media_types.iter().map(String::as_str).collect()
        }
        Returns::Page => vec!["text/html"],
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
    // A price has no texts: the parameter is for the errors.
    let is_price =
        matches!(&operation.returns, Returns::Resource(class) if class.name == "RetailPrice");
    if operation.has_parameter("Accept-Language") && !is_price {
        header_names.push("Content-Language");
    }
    let mut response = json!({
        "description": description(&operation.returns),
        "headers": header_references(&header_names),
    });
    if !content.is_empty() {
        response["content"] = Value::Object(content);
    }
    let links = links_of(operation);
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
        Returns::Page => "The page.".to_owned(),
        Returns::Image(_) => "The image.".to_owned(),
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

/// The links of an operation's response: to the operations on the resource it creates or the first
/// one it lists, and on the resources embedded in that one.
fn links_of(operation: &Operation) -> Map<String, Value> {
    let (class, pointer) = match &operation.returns {
        Returns::Created(class) => (class, ""),
        Returns::Collection(class) => (class, "/hydra:member/0"),
        _ => return Map::new(),
    };
    let mut links: Map<_, _> = to_operations_on(class, "", pointer).collect();
    for field in &class.fields {
        if let Range::Object(embedded) = &field.range {
            let embedded = classes::find(embedded);
            let prefix = format!("{}.", field.name);
            let pointer = format!("{pointer}/{}", field.name);
            links.extend(to_operations_on(embedded, &prefix, &pointer));
        }
    }
    links
}

/// A link to each operation on a resource of a class, named by a prefix and the operation's id. The
/// pointer locates the resource in the response.
fn to_operations_on(
    class: &Class,
    prefix: &str,
    pointer: &str,
) -> impl Iterator<Item = (String, Value)> {
    operations_on(class).map(move |operation| {
        let link = json!({
            "operationId": operation.operation_id,
            "parameters": {"id": format!("$response.body#{pointer}/id")},
            "description": operation.summary,
        });
        (format!("{prefix}{}", operation.operation_id), link)
    })
}

/// The operations whose path begins with that of the class's resources, such as
/// `/api/tasks/{id}/done`.
fn operations_on(class: &Class) -> impl Iterator<Item = &'static Operation> {
    let is_target = |operation: &&Operation| matches!(operation.target, HydraTarget::Resource(target) if target.name == class.name);
    let path = operations::all()
        .filter(is_target)
        .map(|operation| operation.path.as_str())
        .find(|path| path.ends_with("/{id}"));
    operations::all()
        .filter(move |operation| path.is_some_and(|path| operation.path.starts_with(path)))
}

/// A reference to the response with one of these codes, which is added to the components.
pub(super) fn error_reference(
    codes: &[&'static ErrorCode],
    public_url: &str,
    components: &mut Map<String, Value>,
) -> Value {
    let names: Vec<_> = codes.iter().map(|code| code.code).collect();
    let name = names.join("-or-");
    let reference = json!({"$ref": format!("#/components/responses/{name}")});
    components
        .entry(name)
        .or_insert_with(|| describe_errors(codes, public_url));
    reference
}

/// The response with one of these codes, or with plain text.
pub(super) fn error_with_plain_text(codes: &[&'static ErrorCode], public_url: &str) -> Value {
    let mut described = describe_errors(codes, public_url);
    described["content"]["text/plain"] = json!({"schema": {"type": "string"}});
    described["headers"] = header_references(&["Retry-After-Optional"]);
    described
}

/// The response with one of these codes, or with a page that says the same.
pub(super) fn error_with_page(codes: &[&'static ErrorCode], public_url: &str) -> Value {
    let mut described = describe_errors(codes, public_url);
    described["content"]["text/html"] = json!({"schema": {"type": "string"}});
    described
}

fn describe_errors(codes: &[&'static ErrorCode], public_url: &str) -> Value {
    let lines: Vec<_> = codes
        .iter()
        .map(|code| format!("`{}`: {}", code.code, code.texts().meaning))
        .collect();
    let examples: Map<_, _> = codes
        .iter()
        .map(|code| {
            let example =
                json!({"summary": code.texts().title, "value": error_example(code, public_url)});
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
        400 | 422 => &["Content-Language"],
        401 | 403 => &["WWW-Authenticate"],
        405 => &["Allow"],
        409 => &["Content-Language", "Retry-After-Optional"],
        429 | 503 => &["Retry-After"],
        _ => &[],
    }
}

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
            let example = violation_example(if is_mismatch { "differs" } else { "required" });
            let violation = example.and_then(|example| serde_json::from_value(example).ok());
            Details::Violations(violation.into_iter().collect())
        }
        _ => Details::None,
    };
    let error = Error::new(code, &*code.texts().meaning).with(details);
    let request_id = "01932e5c-9f4a-7000-8000-0000000000ff";
    json!(Problem::new(&error, request_id, public_url, ENGLISH))
}

/// An example of a violation or a warning with this code, recorded by an end-to-end test.
pub(crate) fn violation_example(code: &str) -> Option<Value> {
    parse_json::<Map<_, _>>(include_str!("violation_examples.json")).remove(code)
}
