//! JSON Schemas of requests and responses, generated from the table of classes.
//!
//! The schemas are those that client generators read without losing a member: every schema has a
//! name, a `$ref` has no siblings, and no two members of a schema have the same name once the
//! characters that identifiers cannot have are removed. `@id` and `@type` would collide with `id`
//! and `type`; schemas with these describe the JSON-LD members in `dependentSchemas`, which
//! validators read and generators do not. Those permit other members explicitly, for linters that
//! assume the contrary.

use serde_json::{Map, Value, json};

use super::members::{field_schema, with_description};
use crate::api_description::{
    SCHEMA_ORG,
    classes::{self, Access, Class, ENUMERATIONS, Field, Presence, TypeName},
    operations::{self, Returns},
};

/// The form of a class's objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaForm {
    /// In responses, with the ids that stored resources have.
    Stored,
    /// In responses, without ids: a resource that is not stored.
    Preview,
    /// As requests have it.
    Draft,
}

impl SchemaForm {
    /// Whether objects of this form have a member.
    pub(super) fn has(self, field: &Field) -> bool {
        match self {
            Self::Stored => field.access != Access::Write,
            Self::Preview => field.access != Access::Write && field.name != "id",
            Self::Draft => field.access != Access::Read,
        }
    }

    pub(super) fn requires(self, field: &Field) -> bool {
        match self {
            // The table has `id` as optional only because previews lack it.
            Self::Stored | Self::Preview => !field.optional || field.name == "id",
            Self::Draft => field.required,
        }
    }
}

/// The name of a class's schema. Generators rename a `Package`, a keyword of some languages.
pub(super) fn name(class: &Class, form: SchemaForm) -> String {
    let name = match class.name.as_str() {
        "Package" => "TaskPackage",
        "PartialCollectionView" => "CollectionView",
        name => name,
    };
    match form {
        SchemaForm::Stored => name.to_owned(),
        SchemaForm::Preview => format!("{name}Preview"),
        SchemaForm::Draft => format!("{name}Draft"),
    }
}

pub(super) fn reference(class: &Class, form: SchemaForm) -> Value {
    named(&name(class, form))
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Every schema that a table describes.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for class in classes::ALL.iter() {
        for form in [SchemaForm::Stored, SchemaForm::Preview, SchemaForm::Draft] {
            if is_listed(class, form) {
                schemas.insert(name(class, form), class_schema(class, form));
            }
        }
    }
    for operation in operations::all() {
        if let Returns::Collection(class) = &operation.returns {
            schemas.insert(collection_name(class), collection_schema(class));
        }
    }
    for enumeration in ENUMERATIONS.iter() {
        let schema = json!({
            "type": "string",
            "enum": enumeration.values,
            "description": enumeration.description,
        });
        schemas.insert(enumeration.name.clone(), schema);
    }
    schemas.insert("Problem".to_owned(), problem_schema());
    schemas.insert("PickupDraft".to_owned(), pickup());
    schemas.insert("DropoffDraft".to_owned(), dropoff());
    schemas
}

/// Whether a class has a schema of its own in a form: errors share `Problem`, collections have a
/// schema per class of their members, and a pickup may lack members that a dropoff must have.
fn is_listed(class: &Class, form: SchemaForm) -> bool {
    let is_described_apart = match form {
        SchemaForm::Stored => {
            ["Error", "ConstraintViolationList", "Collection"].contains(&class.name.as_str())
        }
        SchemaForm::Preview => class.id_presence != Presence::Optional,
        SchemaForm::Draft => class.name == "Task",
    };
    !is_described_apart && class.fields.iter().any(|field| form.has(field))
}

fn collection_name(class: &Class) -> String {
    format!("{}Collection", name(class, SchemaForm::Stored))
}

/// The schema of an operation's response; none without a body.
pub(super) fn of_response(returns: &Returns) -> Option<Value> {
    match returns {
        Returns::Resource(class) | Returns::Created(class) => {
            Some(reference(class, SchemaForm::Stored))
        }
        Returns::Preview(class) => Some(reference(class, SchemaForm::Preview)),
        Returns::Collection(class) => Some(named(&collection_name(class))),
        Returns::JsonLd(schema) | Returns::Document(_, schema) => Some(named(schema)),
        Returns::Text(_) | Returns::Page | Returns::Health => Some(json!({"type": "string"})),
        // As generators know bytes.
        Returns::Image(_) => Some(json!({"type": "string", "format": "binary"})),
        Returns::Nothing => None,
    }
}

fn class_schema(class: &Class, form: SchemaForm) -> Value {
    let mut schema = Schema::of(class, form);
    if form == SchemaForm::Draft {
        schema.description = format!("In requests. {}", class.description);
    } else {
        let has_id = class.id_presence != Presence::Never && form == SchemaForm::Stored;
        schema.add_json_ld_members(class, has_id);
    }
    schema.into_value()
}

/// The schema of a collection of resources of a class. It has the context of its members.
fn collection_schema(members: &Class) -> Value {
    let class = classes::find("Collection");
    let mut schema = Schema::of(class, SchemaForm::Stored);
    schema.description = format!("A page of a list of `{}`.", members.name);
    schema.properties["hydra:member"]["items"] = reference(members, SchemaForm::Stored);
    schema.add_json_ld_members(class, true);
    schema.properties["@context"] = json!({"const": context_path(members)});
    schema.into_value()
}

/// The schema of every error: a client needs one type for them all.
fn problem_schema() -> Value {
    let error = classes::find("Error");
    let invalid = classes::find("ConstraintViolationList");
    let mut schema = Schema::of(error, SchemaForm::Stored);
    for field in &invalid.fields {
        if !schema.properties.contains_key(&field.name) {
            schema.add(&field.name, field_schema(field, SchemaForm::Stored), false);
        }
    }
    schema.dependent = json!({
        "type": {
            "unevaluatedProperties": true,
            "required": ["@context", "@type"],
            "properties": {
                "@context": {"enum": [context_path(error), context_path(invalid)]},
                "@type": {"enum": [type_of(error), type_of(invalid)]},
            },
        },
        "violations": {
            "unevaluatedProperties": true,
            "properties": {
                "@context": {"const": context_path(invalid)},
                "@type": {"const": type_of(invalid)},
            },
        },
    });
    schema.into_value()
}

fn pickup() -> Value {
    with_description(
        class_schema(classes::find("Task"), SchemaForm::Draft),
        "Where and when to pick up the parcel; by default, at the store's address.",
    )
}

/// A task with a place and a time. `if` matches a task that lacks one, and `then` rejects it: of an
/// `anyOf` of the accepted forms instead, code generators would make a union of types.
fn dropoff() -> Value {
    let blank = json!({"type": ["string", "null"], "pattern": r"^\s*$"});
    let absent = json!({"enum": [null]});
    let mut schema = with_description(
        class_schema(classes::find("Task"), SchemaForm::Draft),
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

struct Schema {
    description: String,
    properties: Map<String, Value>,
    required: Vec<String>,
    dependent: Value,
}

impl Schema {
    /// The schema of a class, without the members of JSON-LD.
    fn of(class: &Class, form: SchemaForm) -> Self {
        let mut schema = Self {
            description: class.description.clone(),
            properties: Map::new(),
            required: Vec::new(),
            dependent: Value::Null,
        };
        for field in class.fields.iter().filter(|field| form.has(field)) {
            schema.add(&field.name, field_schema(field, form), form.requires(field));
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
            let constant = json!({"unevaluatedProperties": true, "properties": {
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

fn context_path(class: &Class) -> String {
    format!("/api/contexts/{}", class.name)
}

fn type_of(class: &Class) -> String {
    match class.type_name {
        TypeName::Iri => class.iri().replace("schema:", SCHEMA_ORG),
        TypeName::Term | TypeName::None => class.name.clone(),
    }
}
