//! JSON Schemas of what answers contain, made from the table of classes.

use serde_json::{Map, Value, json};

use super::drafts;
use crate::vocabulary::{
    Access, Class, Field, Iri, Many, Named, Presence, Range, classes, context::DAYS, object,
};

/// Every schema that others refer to.
pub(super) fn all() -> Value {
    let mut schemas = Map::new();
    for class in classes::ALL {
        schemas.insert(class.name.to_owned(), of_class(class));
        if class
            .fields
            .iter()
            .any(|field| field.access != Access::Read)
        {
            schemas.insert(drafts::name(class), drafts::of_class(class));
        }
    }
    schemas.insert("TokenError".to_owned(), token_error());
    Value::Object(schemas)
}

pub(super) fn reference(class: &Class) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", class.name)})
}

/// A resource that is the whole of an answer: it says what it means and which it is.
pub(super) fn alone(class: &Class) -> Value {
    let mut required = vec!["@context"];
    if class.identified != Presence::Never {
        required.push("@id");
    }
    required.extend(
        class
            .fields
            .iter()
            .filter(|field| field.name == "id")
            .map(|field| field.name),
    );
    json!({
        "$ref": format!("#/components/schemas/{}", class.name),
        "required": required,
    })
}

/// A collection with members of this class.
pub(super) fn members(class: &Class) -> Value {
    json!({
        "$ref": "#/components/schemas/Collection",
        "properties": {
            "@context": {"const": context_path(class)},
            "hydra:member": {"items": reference(class)},
        },
        "required": ["@context"],
    })
}

fn of_class(class: &Class) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if class.named != Named::Not {
        // In a collection it is that of the members.
        let context = match class.name {
            "Collection" => json!({"type": "string"}),
            _ => json!({"const": context_path(class)}),
        };
        properties.insert("@context".to_owned(), context);
        properties.insert("@type".to_owned(), json!({"const": type_of(class)}));
        required.push("@type");
    }
    if class.identified != Presence::Never {
        let iri = json!({
            "type": "string",
            "format": "uri-reference",
            "description": "The resource's address.",
        });
        properties.insert("@id".to_owned(), iri);
    }
    if class.identified == Presence::Always {
        required.push("@id");
    }
    for field in class.fields {
        if field.access == Access::Write {
            continue;
        }
        properties.insert(field.name.to_owned(), of_field(field));
        if field.presence == Presence::Always {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "description": class.about,
        "properties": properties,
        "required": required,
    })
}

fn of_field(field: &Field) -> Value {
    let one = match field.values {
        [] => of_range(field.range),
        values => json!({"type": "string", "enum": values}),
    };
    let schema = match field.many {
        Many::One => one,
        Many::Set | Many::List => json!({"type": "array", "items": one}),
    };
    let schema = if field.nullable {
        or_null(schema)
    } else {
        schema
    };
    described(schema, field.about)
}

pub(super) fn of_range(range: Range) -> Value {
    match range {
        Range::Text => json!({"type": "string"}),
        Range::Boolean => json!({"type": "boolean"}),
        Range::Integer => json!({"type": "integer"}),
        Range::Decimal => json!({"type": "number"}),
        Range::Instant => json!({"type": "string", "format": "date-time"}),
        Range::Url => json!({"type": "string", "format": "uri"}),
        Range::Link(_) | Range::Collection(_) => {
            json!({"type": "string", "format": "uri-reference"})
        }
        Range::Object(class) => reference(class),
        Range::AnyOf(classes) => {
            let any: Vec<_> = classes.iter().map(|class| reference(class)).collect();
            json!({"anyOf": any})
        }
        Range::DayOfWeek => json!({"type": "string", "enum": DAYS}),
        Range::Json => json!({"type": "object", "additionalProperties": {"type": "string"}}),
    }
}

/// The schema of what may also be null.
pub(super) fn or_null(mut schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(kind)) => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

pub(super) fn described(mut schema: Value, about: &str) -> Value {
    if !about.is_empty() {
        schema["description"] = json!(about);
    }
    schema
}

fn context_path(class: &Class) -> String {
    format!("/api/contexts/{}", class.name)
}

/// The value of `@type`.
fn type_of(class: &Class) -> String {
    match (class.named, class.iri) {
        (Named::Iri, Iri::Schema(term)) => format!("{}{term}", crate::vocabulary::SCHEMA),
        (Named::Iri, Iri::Hydra(term)) => format!("hydra:{term}"),
        _ => class.name.to_owned(),
    }
}

/// RFC 6749 §5.2, and `message` for old clients.
fn token_error() -> Value {
    Value::Object(object([
        ("type", json!("object")),
        ("description", json!("Why there is no access token.")),
        (
            "properties",
            json!({
                "error": {
                    "type": "string",
                    "enum": [
                        "invalid_client",
                        "invalid_request",
                        "invalid_scope",
                        "unsupported_grant_type",
                    ],
                },
                "error_description": {"type": "string"},
                "message": {"type": "string", "description": "The description again."},
            }),
        ),
        ("required", json!(["error", "error_description", "message"])),
    ]))
}
