//! JSON Schemas of request bodies, generated from the table of classes.

use serde_json::{Map, Value, json};

use super::schemas::{self, named, or_null, range_schema, with_description};
use crate::api_description::classes::{self, Access, Cardinality, Class, Field, Range};

/// What texts must match: they may have tabs and line breaks.
const NO_CONTROL_CHARACTERS: &str = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$";

/// Every schema of request bodies. A pickup may lack members that a dropoff must have, so that the
/// two have a schema each.
pub(super) fn all() -> Map<String, Value> {
    let is_written = |class: &&Class| {
        class
            .fields
            .iter()
            .any(|field| field.access != Access::Read)
    };
    let mut schemas: Map<_, _> = classes::ALL
        .iter()
        .filter(is_written)
        .filter(|class| class.name != "Task")
        .map(|class| (name(class), class_schema(class)))
        .collect();
    schemas.insert("PickupDraft".to_owned(), pickup());
    schemas.insert("DropoffDraft".to_owned(), dropoff());
    schemas
}

/// The schema's name: `DeliveryDraft` for `Delivery`.
fn name(class: &Class) -> String {
    format!("{}Draft", schemas::name(class))
}

pub(super) fn reference(class: &Class) -> Value {
    named(&name(class))
}

fn class_schema(class: &Class) -> Value {
    let writable = || {
        class
            .fields
            .iter()
            .filter(|field| field.access != Access::Read)
    };
    let properties: Map<_, _> = writable()
        .map(|field| (field.name.clone(), field_schema(field)))
        .collect();
    let required: Vec<_> = writable()
        .filter(|field| field.required)
        .map(|field| field.name.as_str())
        .collect();
    json!({
        "type": "object",
        "description": format!("In requests. {}", class.description),
        "properties": properties,
        "required": required,
    })
}

fn pickup() -> Value {
    with_description(
        class_schema(classes::find("Task")),
        "Where and when to pick up the parcel; by default, at the store's address.",
    )
}

/// A task with a place and a time. `if` matches a task that lacks one, and `then` rejects it: of an
/// `anyOf` of the accepted forms instead, code generators would make a union of types.
fn dropoff() -> Value {
    let blank = json!({"type": ["string", "null"], "pattern": r"^\s*$"});
    let absent = json!({"enum": [null]});
    let mut schema = with_description(
        class_schema(classes::find("Task")),
        "Where and when to drop off the parcel. Requires an address, and `before` or `timeSlot`.",
    );
    schema["required"] = json!(["address"]);
    schema["if"] = json!({"anyOf": [
        {"properties": {"before": blank, "doneBefore": blank, "timeSlot": blank}},
        {"properties": {"address": blank}},
        {"properties": {"address": {
            "type": "object",
            "properties": {"streetAddress": blank, "latLng": absent, "geo": absent},
        }}},
    ]});
    schema["then"] = json!({"not": {}});
    schema
}

fn field_schema(field: &Field) -> Value {
    let schema = match (field.max_length, &field.request) {
        (Some(max_length), _) => json!({
            "type": ["string", "null"],
            "maxLength": max_length,
            "pattern": NO_CONTROL_CHARACTERS,
        }),
        (None, Some(schema)) => schema.clone(),
        (None, None) => default_schema(field),
    };
    with_description(schema, &field.description)
}

/// The schema of a field whose table row has none. A field that is not required may be null.
fn default_schema(field: &Field) -> Value {
    let one = match &field.range {
        Range::Object(class) => reference(classes::find(class)),
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
