//! JSON Schemas of request bodies, generated from the table of classes.

use serde_json::{Map, Value, json};

use super::schemas::{or_null, range_schema, with_description};
use crate::api_description::{Access, Cardinality, Class, Field, Range, classes, parse_json};

/// The schema of every class that occurs in request bodies.
pub(super) fn all() -> impl Iterator<Item = (String, Value)> {
    classes::ALL
        .iter()
        .filter(|class| {
            class
                .fields
                .iter()
                .any(|field| field.access != Access::Read)
        })
        .map(|class| (name(class), class_schema(class)))
}

/// The schema's name: `DeliveryDraft` for `Delivery`.
fn name(class: &Class) -> String {
    format!("{}Draft", class.name)
}

pub(super) fn reference(class: &Class) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", name(class))})
}

fn class_schema(class: &Class) -> Value {
    let writable = || {
        class
            .fields
            .iter()
            .filter(|field| field.access != Access::Read)
    };
    let properties: Map<_, _> = writable()
        .map(|field| (field.name.to_owned(), field_schema(field)))
        .collect();
    let required: Vec<_> = writable()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    json!({
        "type": "object",
        "description": format!("In requests. {}", class.description),
        "properties": properties,
        "required": required,
    })
}

fn field_schema(field: &Field) -> Value {
    let schema = match field.request_schema {
        Some(schema) => parse_json(schema),
        None => default_schema(field),
    };
    with_description(schema, field.description)
}

/// The schema of a field without a `request_schema`. A field that is not required may be null.
fn default_schema(field: &Field) -> Value {
    let one = match field.range {
        Range::Object(class) => reference(class),
        range => range_schema(range),
    };
    let schema = match field.cardinality {
        Cardinality::One => one,
        Cardinality::Set | Cardinality::List => json!({"type": "array", "items": one}),
    };
    if field.required {
        schema
    } else {
        or_null(schema)
    }
}

pub(super) fn token_request() -> Value {
    json!({
        "type": "object",
        "properties": {
            "grant_type": {"type": "string", "const": "client_credentials"},
            "scope": {
                "type": "string",
                // `scope-token`s of RFC 6749, section 3.3.
                "pattern": r"^[ !#-\[\]-~]*$",
                "description": "Scopes, separated by spaces; by default `deliveries`.",
            },
            "client_id": {"type": "string", "description": "The API key, unless sent by HTTP Basic."},
            "client_secret": {"type": "string", "description": "Its secret, unless sent by HTTP Basic."},
        },
        "required": ["grant_type"],
    })
}
