//! Query, path and header parameters.

use serde_json::{Value, json};

use crate::{
    api_description::{
        TypeName, classes,
        operations::{Operation, Parameter},
        parse_json,
    },
    error_codes,
    resources::docs_page::FILES,
    violation_codes, warning_codes,
};

/// The only spelling of a UUID that is accepted.
const CANONICAL_UUID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";
/// An encrypted quote: longer than any other last segment of a path.
const QUOTE: &str = "^[A-Za-z0-9_-]{64,}$";

/// The parameters shared by many operations.
pub(super) fn shared() -> Value {
    json!({
        "If-None-Match": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `ETag` of the last response. If the resource is unchanged, the response is 304.",
            "schema": {"type": "string"},
        },
    })
}

/// The parameters of an operation.
pub(super) fn of(operation: &Operation) -> Vec<Value> {
    let in_path = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(path_parameter);
    let others = operation.parameters.iter().map(query_or_header);
    let if_none_match = json!({"$ref": "#/components/parameters/If-None-Match"});
    let conditional = operation.has_etag().then_some(if_none_match);
    in_path.chain(others).chain(conditional).collect()
}

fn query_or_header(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name,
        "in": parameter.location,
        "description": parameter.description,
        "schema": parse_json::<Value>(parameter.schema),
    });
    if parameter.is_repeatable {
        described["style"] = json!("form");
        described["explode"] = json!(true);
        described["schema"] = json!({"type": "array", "items": described["schema"]});
    }
    described
}

fn path_parameter(name: &str) -> Value {
    let (description, schema) = match name {
        "id" => (
            "The last segment of the resource's `@id`.",
            json!({"type": "string", "format": "uuid", "pattern": CANONICAL_UUID}),
        ),
        "token" => (
            "The last segment of the price's `@id`.",
            json!({"type": "string", "pattern": QUOTE}),
        ),
        "name" => {
            let names: Vec<_> = classes::ALL
                .iter()
                .filter(|class| class.type_name != TypeName::None)
                .map(|class| class.name)
                .collect();
            (
                "The name of a class.",
                json!({"type": "string", "enum": names}),
            )
        }
        "code" => {
            let mut codes = [
                error_codes::CODES,
                violation_codes::CODES,
                warning_codes::CODES,
            ]
            .concat();
            codes.sort_unstable();
            codes.dedup();
            (
                "The `code` of an error, a violation or a warning.",
                json!({"type": "string", "enum": codes}),
            )
        }
        // Not `file`: generators rename an enum of that name.
        "asset" => {
            let names: Vec<_> = FILES.iter().map(|(name, ..)| *name).collect();
            ("The file's name.", json!({"type": "string", "enum": names}))
        }
        _ => ("", json!({"type": "string"})),
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": schema,
    })
}
