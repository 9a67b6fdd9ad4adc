//! The table of classes and their members, in the JSON files of this folder, and the closed sets of
//! strings. In them, IRIs are compact: `schema:` is schema.org, `hydra:` is Hydra, and `vocab:` is the
//! API's own vocabulary.

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::{DOCUMENTATION, HYDRA, SCHEMA_ORG, parse_json};
use crate::representation::error_codes::{ERRORS, VIOLATIONS, WARNINGS, codes};

/// Every class, in the order of the documentation.
pub(super) static ALL: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let tables = [
        include_str!("deliveries.json"),
        include_str!("task_commands.json"),
        include_str!("prices.json"),
        include_str!("stores.json"),
        include_str!("webhooks.json"),
        include_str!("api.json"),
    ];
    tables.into_iter().flat_map(parse_json::<Vec<_>>).collect()
});

/// The class with a name of the tables.
pub(crate) fn find(name: &str) -> &'static Class {
    let mut classes = ALL.iter();
    let class = classes.find(|class| class.name == name);
    class.expect("a test finds every class that a table names")
}

/// A class of JSON objects in requests and responses.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    /// Name, and last segment of the path of its JSON-LD context.
    pub(super) name: String,
    /// By default the term of the API's vocabulary with the class's name.
    iri: Option<String>,
    #[serde(rename = "type", default)]
    pub(super) type_name: TypeName,
    /// Whether its objects have an `@id`.
    #[serde(rename = "id", default)]
    pub(super) id_presence: Presence,
    pub(super) description: String,
    /// The example of a request; null if a request never consists of one object of the class.
    #[serde(default)]
    pub(super) example: Value,
    pub(crate) fields: Vec<Field>,
}

/// The form of `@type` in the objects of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum TypeName {
    /// The class's name.
    Term,
    /// The class's IRI, expanded or with a prefix.
    Iri,
    /// The objects have no `@type`.
    #[default]
    None,
}

/// Whether the objects of a class have an `@id` in responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Presence {
    Always,
    /// Stored resources do, previews do not.
    Optional,
    #[default]
    Never,
}

/// A member of the objects of a class.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// By default the name itself if it is a compact IRI such as `hydra:title`, or else the term of
    /// the API's vocabulary.
    iri: Option<String>,
    pub(crate) range: Range,
    #[serde(default)]
    pub(super) cardinality: Cardinality,
    #[serde(default)]
    pub(crate) access: Access,
    /// Required in requests.
    #[serde(default)]
    pub(super) required: bool,
    /// Absent from some responses.
    #[serde(default)]
    pub(super) optional: bool,
    /// Null in responses without a value.
    #[serde(default)]
    pub(super) nullable: bool,
    /// The JSON Schema of the member in requests, where it differs from responses.
    pub(super) request: Option<Value>,
    /// The maximum length of the text in requests, in characters.
    #[serde(rename = "maxLength")]
    pub(super) max_length: Option<u32>,
    /// What the member means; empty if its range says it.
    #[serde(default)]
    pub(super) description: String,
}

/// The type of a field's values. Classes and enumerations are given by their names.
#[derive(Debug, Deserialize)]
pub(crate) enum Range {
    Text,
    /// One of a closed set of strings.
    Enum(String),
    Boolean,
    Integer,
    Decimal,
    /// A string such as `2020-04-02T12:00:00+02:00`.
    Instant,
    /// A string with a URL, stored unchanged.
    Url,
    /// A string with the IRI of a resource.
    Link(Option<String>),
    /// A string with the IRI of a collection of resources of a class.
    Collection(String),
    /// An object of a class.
    Object(String),
    /// An object of one of these classes.
    AnyOf(Vec<String>),
    /// The English name of a day of the week, a term of schema.org.
    DayOfWeek,
    /// `BasicRepresentation`, a term of Hydra.
    VariableRepresentation,
    /// JSON with keys chosen by the client.
    Json,
}

/// Whether a field has one value, an unordered set or an ordered list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Cardinality {
    #[default]
    One,
    Set,
    List,
}

/// Whether a field is in responses, in requests, or in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Access {
    #[default]
    Read,
    Write,
    Both,
}

impl Class {
    pub(super) fn iri(&self) -> String {
        let iri = self.iri.clone();
        iri.unwrap_or_else(|| format!("vocab:{}", self.name))
    }
}

impl Field {
    pub(super) fn iri(&self) -> String {
        match &self.iri {
            Some(iri) => iri.clone(),
            None if self.name.contains(':') => self.name.clone(),
            None => format!("vocab:{}", self.name),
        }
    }
}

/// Expands a compact IRI of the tables.
pub(super) fn expand(iri: &str, public_url: &str) -> String {
    let (prefix, term) = iri.split_once(':').unwrap_or_default();
    let namespace = match prefix {
        "schema" => Some(SCHEMA_ORG.to_owned()),
        "hydra" => Some(HYDRA.to_owned()),
        "vocab" => Some(format!("{public_url}{DOCUMENTATION}#")),
        _ => None,
    };
    namespace.expect("a test expands every IRI of the tables") + term
}

/// The class with a name.
impl<'de> Deserialize<'de> for &'static Class {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let class = ALL.iter().find(|class| class.name == name);
        class.ok_or_else(|| D::Error::custom(format!("no class is named {name}")))
    }
}

/// From Monday, as in core's messages.
pub(crate) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A closed set of strings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Enumeration {
    /// The name of its JSON Schema.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) values: Vec<String>,
}

/// The closed sets of strings in requests and responses.
pub(super) static ENUMERATIONS: LazyLock<Vec<Enumeration>> = LazyLock::new(|| {
    let mut all: Vec<Enumeration> = parse_json(include_str!("enumerations.json"));
    for Enumeration { name, values, .. } in &mut all {
        let of_table = match name.as_str() {
            "DayOfWeek" => DAYS.to_vec(),
            "ErrorCode" => codes(&ERRORS),
            "ViolationCode" => codes(&VIOLATIONS),
            "WarningCode" => codes(&WARNINGS),
            _ => continue,
        };
        *values = of_table.into_iter().map(str::to_owned).collect();
    }
    all
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_iri_of_the_tables_has_a_known_prefix() {
        for class in ALL.iter() {
            expand(&class.iri(), "");
            for field in &class.fields {
                expand(&field.iri(), "");
                if field.name.contains(':') {
                    expand(&field.name, "");
                }
            }
        }
    }

    #[test]
    fn a_prefix_is_expanded_to_its_namespace() {
        for (iri, expected) in [
            ("schema:name", "http://schema.org/name"),
            ("hydra:title", "http://www.w3.org/ns/hydra/core#title"),
            ("vocab:name", "/public/api/docs.jsonld#name"),
        ] {
            assert_eq!(expand(iri, "/public"), expected);
        }
    }

    /// The schema of the member in requests would follow from one of them only.
    #[test]
    fn no_member_has_both_a_maximum_length_and_a_schema_for_requests() {
        for class in ALL.iter() {
            for field in &class.fields {
                let has_both = field.max_length.is_some() && field.request.is_some();
                assert!(!has_both, "{} of {}", field.name, class.name);
            }
        }
    }

    #[test]
    fn every_class_that_a_member_names_exists() {
        let mut found = 0;
        for field in ALL.iter().flat_map(|class| &class.fields) {
            let names = match &field.range {
                Range::Link(name) => name.as_slice(),
                Range::Collection(name) | Range::Object(name) => std::slice::from_ref(name),
                Range::AnyOf(names) => names,
                _ => &[],
            };
            for name in names {
                assert_eq!(find(name).name, *name);
                found += 1;
            }
        }
        assert!(found > 30, "{found}");
    }
}
