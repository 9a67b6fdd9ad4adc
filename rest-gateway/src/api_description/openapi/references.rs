//! The forms of a class's objects, and references to the schema of each.

use serde_json::{Value, json};

use crate::api_description::classes::{Access, Class, Field};

/// The form of a class's objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In responses, with the ids that stored resources have.
    Stored,
    /// In responses, without ids: a resource that is not stored.
    Preview,
    /// In requests.
    Draft,
}

impl Form {
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
pub(super) fn name(class: &Class, form: Form) -> String {
    let name = match class.name.as_str() {
        "Package" => "TaskPackage",
        "PartialCollectionView" => "CollectionView",
        name => name,
    };
    match form {
        Form::Stored => name.to_owned(),
        Form::Preview => format!("{name}Preview"),
        Form::Draft => format!("{name}Draft"),
    }
}

/// A reference to the schema of a class.
pub(super) fn reference(class: &Class, form: Form) -> Value {
    named(&name(class, form))
}

/// A reference to a schema.
pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
