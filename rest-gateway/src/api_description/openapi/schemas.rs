//! JSON Schemas of responses, generated from the table of classes.

use serde_json::{Map, Value, json};

use crate::api_description::{
    Access, Cardinality, Class, Field, Iri, Presence, Range, TypeName, classes, context::DAYS,
    object,
};

/// The schema of every class, and of token errors.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas: Map<_, _> = classes::ALL
        .iter()
        .map(|class| (class.name.to_owned(), class_schema(class)))
        .collect();
    schemas.insert("TokenError".to_owned(), token_error());
    schemas
}

pub(super) fn reference(class: &Class) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", class.name)})
}

/// The schema of a response that is one resource: `@context` and the IDs are required.
pub(super) fn top_level(class: &Class) -> Value {
    let mut required = vec!["@context"];
    if class.id_presence != Presence::Never {
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

/// The schema of a collection of resources of a class.
pub(super) fn collection(class: &Class) -> Value {
    json!({
        "$ref": "#/components/schemas/Collection",
        "properties": {
            "@context": {"const": context_path(class)},
            "hydra:member": {"items": reference(class)},
        },
        "required": ["@context"],
    })
}

fn class_schema(class: &Class) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if class.type_name != TypeName::None {
        // A collection has the context of its members.
        let context = match class.name {
            "Collection" => json!({"type": "string"}),
            _ => json!({"const": context_path(class)}),
        };
        properties.insert("@context".to_owned(), context);
        properties.insert("@type".to_owned(), json!({"const": type_of(class)}));
        required.push("@type");
    }
    if class.id_presence != Presence::Never {
        let iri = json!({
            "type": "string",
            "format": "uri-reference",
            "description": "The IRI of the resource.",
        });
        properties.insert("@id".to_owned(), iri);
    }
    if class.id_presence == Presence::Always {
        required.push("@id");
    }
    for field in class.fields {
        if field.access == Access::Write {
            continue;
        }
        properties.insert(field.name.to_owned(), field_schema(field));
        if field.presence == Presence::Always {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "description": class.description,
        "properties": properties,
        "required": required,
    })
}

fn field_schema(field: &Field) -> Value {
    let one = match field.values {
        [] => range_schema(field.range),
        values => json!({"type": "string", "enum": values}),
    };
    let schema = match field.cardinality {
        Cardinality::One => one,
        Cardinality::Set | Cardinality::List => json!({"type": "array", "items": one}),
    };
    let schema = if field.nullable {
        or_null(schema)
    } else {
        schema
    };
    with_description(schema, field.description)
}

pub(super) fn range_schema(range: Range) -> Value {
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

/// Also permits null.
pub(super) fn or_null(mut schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(kind)) => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

pub(super) fn with_description(mut schema: Value, description: &str) -> Value {
    if !description.is_empty() {
        schema["description"] = json!(description);
    }
    schema
}

fn context_path(class: &Class) -> String {
    format!("/api/contexts/{}", class.name)
}

/// The value of `@type`.
fn type_of(class: &Class) -> String {
    match (class.type_name, class.iri) {
        (TypeName::Iri, Iri::SchemaOrg(term)) => {
            format!("{}{term}", crate::api_description::SCHEMA_ORG)
        }
        (TypeName::Iri, Iri::Hydra(term)) => format!("hydra:{term}"),
        _ => class.name.to_owned(),
    }
}

/// The schema of a token error: RFC 6749 §5.2, with `message` for older clients.
fn token_error() -> Value {
    Value::Object(object([
        ("type", json!("object")),
        ("description", json!("The failure of a token request.")),
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
                "message": {"type": "string", "description": "The same as `error_description`."},
            }),
        ),
        ("required", json!(["error", "error_description", "message"])),
    ]))
}
