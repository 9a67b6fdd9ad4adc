//! JSON Schemas of the members of a class.

use serde_json::{Value, json};

use super::schemas::{SchemaForm, named, reference};
use crate::api_description::{
    classes::{self, Cardinality, Field, Presence, Range},
    context::BASIC_REPRESENTATION,
};

/// What texts in requests must match: they may have tabs and line breaks.
const NO_CONTROL_CHARACTERS: &str =
    r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202d\u202e]*$";

/// The schema of a member.
pub(super) fn field_schema(field: &Field, form: SchemaForm) -> Value {
    let schema = match (field.max_length, &field.request) {
        (Some(max_length), _) if form == SchemaForm::Draft => json!({
            "type": ["string", "null"],
            "maxLength": max_length,
            "pattern": NO_CONTROL_CHARACTERS,
        }),
        (None, Some(schema)) if form == SchemaForm::Draft => schema.clone(),
        _ => default_schema(field, form),
    };
    with_description(schema, &field.description)
}

/// The schema that follows from the range. In requests, a member that is not required may be null.
fn default_schema(field: &Field, form: SchemaForm) -> Value {
    let one = range_schema(&field.range, form);
    let schema = match field.cardinality {
        Cardinality::One => one,
        Cardinality::Set | Cardinality::List => json!({"type": "array", "items": one}),
    };
    let is_nullable = match form {
        SchemaForm::Stored | SchemaForm::Preview => field.nullable,
        SchemaForm::Draft => !field.required,
    };
    if is_nullable { or_null(schema) } else { schema }
}

fn range_schema(range: &Range, form: SchemaForm) -> Value {
    match range {
        Range::Text => json!({"type": "string"}),
        Range::Enum(enumeration) => named(enumeration),
        Range::Boolean => json!({"type": "boolean"}),
        Range::Integer => json!({"type": "integer"}),
        Range::Decimal => json!({"type": "number"}),
        Range::Instant => json!({"type": "string", "format": "date-time"}),
        Range::Url => json!({"type": "string", "format": "uri"}),
        Range::Link(_) | Range::Collection(_) => {
            json!({"type": "string", "format": "uri-reference"})
        }
        Range::Object(class) => {
            let class = classes::find(class);
            let has_no_preview = class.id_presence != Presence::Optional;
            let is_stored = form == SchemaForm::Preview && has_no_preview;
            reference(class, if is_stored { SchemaForm::Stored } else { form })
        }
        Range::AnyOf(classes) => {
            let classes = classes.iter().map(|class| classes::find(class));
            let any: Vec<_> = classes.map(|class| reference(class, form)).collect();
            json!({"anyOf": any})
        }
        Range::DayOfWeek => named("DayOfWeek"),
        Range::VariableRepresentation => json!({"const": BASIC_REPRESENTATION}),
        Range::Json => json!({"type": "object", "additionalProperties": {"type": "string"}}),
    }
}

/// Also permits null.
fn or_null(mut schema: Value) -> Value {
    match schema.get("type") {
        Some(Value::String(kind)) => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

/// Adds a description, but not to a `$ref`: the schema that it refers to has its own.
pub(super) fn with_description(mut schema: Value, description: &str) -> Value {
    if !description.is_empty() && schema.get("$ref").is_none() {
        schema["description"] = json!(description);
    }
    schema
}
