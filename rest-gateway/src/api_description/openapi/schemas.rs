//! JSON Schemas of responses, generated from the table of classes.
//!
//! The schemas are those that client generators read without losing a member: every schema has a
//! name, a `$ref` has no siblings, and no two members of a schema have the same name once the
//! characters that identifiers cannot have are removed. `@id` and `@type` would collide with `id`
//! and `type`; schemas with these describe the JSON-LD members in `dependentSchemas`, which
//! validators read and generators do not.

use serde_json::{Map, Value, json};

use crate::api_description::{
    SCHEMA_ORG,
    classes::{self, Access, Cardinality, Class, Field, Presence, Range, TypeName},
    context::BASIC_REPRESENTATION,
    enumerations::{self, Enumeration},
    operations::{self, Returns},
};

/// The form of a class's objects in responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With the ids that stored resources have.
    Stored,
    /// Without ids: a resource that is not stored.
    Preview,
}

/// Every schema of responses that a table describes.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for class in classes::ALL.iter().filter(|class| is_listed(class)) {
        schemas.insert(name(class), class_schema(class, Form::Stored));
        if class.id_presence == Presence::Optional {
            schemas.insert(preview_name(class), class_schema(class, Form::Preview));
        }
    }
    for operation in operations::all() {
        if let Returns::Collection(class) = &operation.returns {
            schemas.insert(collection_name(class), collection_schema(class));
        }
    }
    for enumeration in enumerations::ALL.iter() {
        schemas.insert(enumeration.name.clone(), enumeration_schema(enumeration));
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    schemas
}

/// Whether a class has a schema of its own in responses: errors share `Problem`, and collections
/// have a schema per class of their members.
fn is_listed(class: &Class) -> bool {
    let shared = ["Error", "ConstraintViolationList", "Collection"];
    !shared.contains(&class.name.as_str())
        && class
            .fields
            .iter()
            .any(|field| field.access != Access::Write)
}

/// The name of a class's schema. Generators rename a `Package`, a keyword of some languages.
pub(super) fn name(class: &Class) -> String {
    match class.name.as_str() {
        "Package" => "TaskPackage",
        "PartialCollectionView" => "CollectionView",
        name => name,
    }
    .to_owned()
}

fn preview_name(class: &Class) -> String {
    format!("{}Preview", name(class))
}

fn collection_name(class: &Class) -> String {
    format!("{}Collection", name(class))
}

/// A reference to a schema.
pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The schema of an operation's response; none without a body.
pub(super) fn of_response(returns: &Returns) -> Option<Value> {
    match returns {
        Returns::Resource(class) | Returns::Created(class) => Some(named(&name(class))),
        Returns::Preview(class) => Some(named(&preview_name(class))),
        Returns::Collection(class) => Some(named(&collection_name(class))),
        Returns::JsonLd(schema) | Returns::Document(_, schema) => Some(named(schema)),
        Returns::Text(_) | Returns::Health => Some(json!({"type": "string"})),
        Returns::Nothing => None,
    }
}

fn class_schema(class: &Class, form: Form) -> Value {
    let mut schema = Schema::of(class, form);
    let has_id = class.id_presence != Presence::Never && form == Form::Stored;
    schema.add_json_ld_members(class, has_id);
    schema.into_value()
}

/// The schema of a collection of resources of a class. It has the context of its members.
fn collection_schema(members: &Class) -> Value {
    let class = classes::find("Collection");
    let mut schema = Schema::of(class, Form::Stored);
    schema.description = format!("A page of a list of `{}`.", members.name);
    schema.properties["hydra:member"]["items"] = named(&name(members));
    schema.add_json_ld_members(class, true);
    schema.properties["@context"] = json!({"const": context_path(members)});
    schema.into_value()
}

/// The schema of every error: a client needs one type for them all.
fn problem_schema() -> Value {
    let error = classes::find("Error");
    let invalid = classes::find("ConstraintViolationList");
    let mut schema = Schema::of(error, Form::Stored);
    for field in &invalid.fields {
        if !schema.properties.contains_key(&field.name) {
            schema.add(&field.name, field_schema(field, Form::Stored), false);
        }
    }
    schema.dependent = json!({
        "type": {
            "required": ["@context", "@type"],
            "properties": {
                "@context": {"enum": [context_path(error), context_path(invalid)]},
                "@type": {"enum": [type_of(error), type_of(invalid)]},
            },
        },
        "violations": {
            "properties": {
                "@context": {"const": context_path(invalid)},
                "@type": {"const": type_of(invalid)},
            },
        },
    });
    schema.into_value()
}

fn enumeration_schema(enumeration: &Enumeration) -> Value {
    json!({
        "type": "string",
        "enum": enumeration.values,
        "description": enumeration.description,
    })
}

/// The schema of an object.
struct Schema {
    description: String,
    properties: Map<String, Value>,
    required: Vec<String>,
    dependent: Value,
}

impl Schema {
    /// The schema of a class, without the members of JSON-LD.
    fn of(class: &Class, form: Form) -> Self {
        let mut schema = Self {
            description: class.description.clone(),
            properties: Map::new(),
            required: Vec::new(),
            dependent: Value::Null,
        };
        for field in &class.fields {
            let is_id_of_preview = form == Form::Preview && field.name == "id";
            if field.access == Access::Write || is_id_of_preview {
                continue;
            }
            // The table has `id` as optional only because previews lack it.
            let is_required = !field.optional || field.name == "id";
            schema.add(&field.name, field_schema(field, form), is_required);
        }
        schema
    }

    fn add(&mut self, name: &str, schema: Value, is_required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if is_required {
            self.required.push(name.to_owned());
        }
    }

    /// Adds `@context`, `@id` and `@type`: as properties, or in `dependentSchemas` where `id` or
    /// `type` are properties.
    fn add_json_ld_members(&mut self, class: &Class, has_id: bool) {
        let has_type = class.type_name != TypeName::None;
        let collides = ["id", "type"].map(|name| self.properties.contains_key(name));
        if !collides.contains(&true) {
            if has_type && is_top_level(class) {
                self.add("@context", json!({"const": context_path(class)}), true);
            }
            if has_type {
                self.add("@type", json!({"const": type_of(class)}), true);
            }
            if has_id {
                let is_required = class.id_presence == Presence::Always;
                self.add("@id", iri(), is_required);
            }
            return;
        }
        let mut dependent = Map::new();
        if has_id {
            dependent.insert("id".to_owned(), named("JsonLdMembers"));
        }
        if has_type {
            let constant = json!({"properties": {
                "@context": {"const": context_path(class)},
                "@type": {"const": type_of(class)},
            }});
            dependent.insert("@type".to_owned(), constant);
        }
        self.dependent = Value::Object(dependent);
    }

    fn into_value(self) -> Value {
        let mut schema = json!({
            "type": "object",
            "description": self.description,
            "properties": self.properties,
            "required": self.required,
        });
        if self
            .dependent
            .as_object()
            .is_some_and(|some| !some.is_empty())
        {
            schema["dependentSchemas"] = self.dependent;
        }
        schema
    }
}

/// Whether a response consists of one object of the class.
fn is_top_level(class: &Class) -> bool {
    class.name == "Collection"
        || operations::all().any(|operation| match &operation.returns {
            Returns::Resource(returned) | Returns::Created(returned) => returned.name == class.name,
            _ => false,
        })
}

fn iri() -> Value {
    json!({
        "type": "string",
        "format": "uri-reference",
        "description": "The IRI of the resource.",
    })
}

fn field_schema(field: &Field, form: Form) -> Value {
    let has_preview = |class| classes::find(class).id_presence == Presence::Optional;
    let one = match &field.range {
        Range::Object(class) if form == Form::Preview && has_preview(class) => {
            named(&preview_name(classes::find(class)))
        }
        range => range_schema(range),
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
    with_description(schema, &field.description)
}

pub(super) fn range_schema(range: &Range) -> Value {
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
        Range::Object(class) => named(&name(classes::find(class))),
        Range::AnyOf(classes) => {
            let classes = classes.iter().map(|class| classes::find(class));
            let any: Vec<_> = classes.map(|class| named(&name(class))).collect();
            json!({"anyOf": any})
        }
        Range::DayOfWeek => named("DayOfWeek"),
        Range::VariableRepresentation => json!({"const": BASIC_REPRESENTATION}),
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

/// Adds a description, but not to a `$ref`: the schema that it refers to has its own.
pub(super) fn with_description(mut schema: Value, description: &str) -> Value {
    if !description.is_empty() && schema.get("$ref").is_none() {
        schema["description"] = json!(description);
    }
    schema
}

fn context_path(class: &Class) -> String {
    format!("/api/contexts/{}", class.name)
}

/// The value of `@type`.
fn type_of(class: &Class) -> String {
    match class.type_name {
        TypeName::Iri => class.iri().replace("schema:", SCHEMA_ORG),
        TypeName::Term | TypeName::None => class.name.clone(),
    }
}
