//! The parts of a request beside its body.

use serde_json::{Value, json};

use super::examples::parse;
use crate::{
    error_codes,
    resources::docs_page::FILES,
    vocabulary::{Named, classes, operations::Operation},
};

/// Parameters that many operations have.
pub(super) fn shared() -> Value {
    json!({
        "If-None-Match": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `ETag` of the answer you have: if nothing has changed, 304 says so.",
            "schema": {"type": "string"},
        },
        "X-Request-Id": {
            "name": "X-Request-Id",
            "in": "header",
            "description": "What you call this request; made up if you don't.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9._~:/+=@-]{1,128}$"},
        },
    })
}

/// Those of an operation.
pub(super) fn of(operation: &Operation) -> Vec<Value> {
    let of_path = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(of_path);
    let others = operation.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "description": parameter.about,
            "schema": parse(parameter.schema),
        })
    });
    let tag = json!({"$ref": "#/components/parameters/If-None-Match"});
    let tag = operation.is_tagged().then_some(tag);
    of_path.chain(others).chain(tag).collect()
}

fn of_path(name: &str) -> Value {
    let (about, schema) = match name {
        "id" => (
            "The last part of the resource's `@id`.",
            json!({"type": "string", "format": "uuid"}),
        ),
        "token" => (
            "The last part of the price's `@id`.",
            json!({"type": "string"}),
        ),
        "name" => {
            let names: Vec<_> = classes::ALL
                .iter()
                .filter(|class| class.named != Named::Not)
                .map(|class| class.name)
                .collect();
            (
                "A type of resource.",
                json!({"type": "string", "enum": names}),
            )
        }
        "code" => {
            let codes: Vec<_> = error_codes::ALL.iter().map(|code| code.code).collect();
            (
                "An error's `code`.",
                json!({"type": "string", "enum": codes}),
            )
        }
        "file" => {
            let names: Vec<_> = FILES.iter().map(|(name, ..)| *name).collect();
            ("The file's name.", json!({"type": "string", "enum": names}))
        }
        _ => ("", json!({"type": "string"})),
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": about,
        "schema": schema,
    })
}
