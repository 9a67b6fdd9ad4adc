//! JSON Schemas of what requests contain, made from the table of classes.

use serde_json::{Map, Value, json};

use super::{
    examples::parse,
    schemas::{described, of_range, or_null},
};
use crate::vocabulary::{Access, Class, Field, Many, Range};

/// Beside `Delivery`, which answers have, there is `DeliveryDraft`.
pub(super) fn name(class: &Class) -> String {
    format!("{}Draft", class.name)
}

pub(super) fn reference(class: &Class) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", name(class))})
}

pub(super) fn of_class(class: &Class) -> Value {
    let sent = || {
        class
            .fields
            .iter()
            .filter(|field| field.access != Access::Read)
    };
    let properties: Map<_, _> = sent()
        .map(|field| (field.name.to_owned(), of_field(field)))
        .collect();
    let required: Vec<_> = sent()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    json!({
        "type": "object",
        "description": format!("In requests. {}", class.about),
        "properties": properties,
        "required": required,
    })
}

fn of_field(field: &Field) -> Value {
    let schema = match field.sent_as {
        Some(schema) => parse(schema),
        None => plain(field),
    };
    described(schema, field.about)
}

/// What is required is there, and what is not may as well be null.
fn plain(field: &Field) -> Value {
    let one = match field.range {
        Range::Object(class) => reference(class),
        range => of_range(range),
    };
    let schema = match field.many {
        Many::One => one,
        Many::Set | Many::List => json!({"type": "array", "items": one}),
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
                "description": "Scopes, separated by spaces; `deliveries` if none is asked for.",
            },
            "client_id": {"type": "string", "description": "The API key, if not by HTTP Basic."},
            "client_secret": {"type": "string", "description": "Its secret, if not by HTTP Basic."},
        },
        "required": ["grant_type"],
    })
}
