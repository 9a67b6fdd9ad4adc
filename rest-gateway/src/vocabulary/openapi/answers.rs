//! What is answered when all goes well.

use serde_json::{Map, Value, json};

use super::{
    examples::{Examples, parse},
    headers, schemas,
};
use crate::vocabulary::operations::{Needs, Operation, Returns};

/// The answer of an operation that succeeds.
pub(super) fn success(operation: &Operation, examples: &Examples) -> Value {
    let schema = match operation.returns {
        Returns::Resource(class) | Returns::Created(class) => Some(schemas::alone(class)),
        Returns::Preview(class) => Some(schemas::reference(class)),
        Returns::Members(class) => Some(schemas::members(class)),
        Returns::JsonLd(schema) | Returns::Document(_, schema) => Some(parse(schema)),
        Returns::Health => Some(json!({"const": "ok\n"})),
        Returns::Nothing => None,
    };
    let media_types: &[&str] = match operation.returns {
        Returns::Nothing => &[],
        Returns::Document(media_types, _) => media_types,
        Returns::Health => &["text/plain"],
        _ => &["application/ld+json", "application/json"],
    };
    let example = examples.answer(operation.id);
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

    let mut names = Vec::new();
    if matches!(operation.returns, Returns::Created(_)) {
        names.push("Location");
    }
    if operation.takes_a_key() {
        names.push("Idempotent-Replayed");
    }
    if operation.is_tagged() {
        names.extend(["Cache-Control", "ETag"]);
    }
    if operation.needs == Needs::Credentials {
        names.push("Cache-Control");
    }
    if operation
        .parameters
        .iter()
        .any(|parameter| parameter.name == "Accept-Language")
    {
        names.push("Content-Language");
    }
    let mut answer = json!({
        "description": description(operation.returns),
        "headers": headers::of_an_answer(&names),
    });
    if !content.is_empty() {
        answer["content"] = Value::Object(content);
    }
    answer
}

/// The answer to who has the other already.
pub(super) fn not_modified() -> Value {
    json!({
        "description": "Nothing has changed since the answer with that `ETag`.",
        "headers": headers::of_an_answer(&["Cache-Control", "ETag"]),
    })
}

fn description(returns: Returns) -> String {
    match returns {
        Returns::Resource(class) => class.about.to_owned(),
        Returns::Created(class) => format!("Created. {}", class.about),
        Returns::Preview(class) => format!("It would be accepted. {}", class.about),
        Returns::Members(class) => format!("A collection. {}", class.about),
        Returns::Nothing => "Done.".to_owned(),
        Returns::Health => "Yes.".to_owned(),
        Returns::JsonLd(_) | Returns::Document(..) => "What was asked for.".to_owned(),
    }
}
