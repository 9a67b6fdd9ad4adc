//! The API's description of itself: tables of classes, fields and operations, from which the
//! routes, the JSON-LD contexts, the Hydra documentation and the OpenAPI document are made.

mod classes;
mod context;
mod documentation;
mod enumerations;
mod openapi;
pub(crate) mod operations;
mod shape;

use serde::de::DeserializeOwned;

pub(crate) use classes::deliveries::DELIVERY;
pub(crate) use context::context;
pub(crate) use documentation::api_documentation;
pub(crate) use enumerations::DAYS;
pub(crate) use openapi::{SCOPES, error_example, openapi, violation_example};
pub(crate) use shape::Shape;

const SCHEMA_ORG: &str = "http://schema.org/";
const HYDRA: &str = "http://www.w3.org/ns/hydra/core#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Path of the Hydra documentation; the IRIs of the API's own terms begin with it.
pub(crate) const DOCUMENTATION: &str = "/api/docs.jsonld";

/// Path of the OpenAPI document.
pub(crate) const OPENAPI: &str = "/api/docs.json";

/// A class of JSON objects in requests and responses.
#[derive(Debug)]
pub(crate) struct Class {
    /// Name, and last segment of the path of its JSON-LD context.
    name: &'static str,
    /// By default the term of the API's vocabulary with the class's name.
    iri: Option<Iri>,
    type_name: TypeName,
    /// Whether its objects have an `@id`.
    id_presence: Presence,
    description: &'static str,
    fields: &'static [Field],
}

/// The form of `@type` in the objects of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypeName {
    /// The class's name.
    Term,
    /// The class's IRI, expanded or with a prefix.
    Iri,
    /// The objects have no `@type`.
    None,
}

/// The IRI of a class or a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Iri {
    /// A term of schema.org.
    SchemaOrg(&'static str),
    /// A term of Hydra.
    Hydra(&'static str),
    /// A term of the API's own vocabulary.
    Api(&'static str),
}

/// A member of the objects of a class.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    /// By default the term of the API's vocabulary, or of Hydra for a name such as `hydra:title`.
    iri: Option<Iri>,
    range: Range,
    cardinality: Cardinality,
    access: Access,
    /// Required in requests.
    required: bool,
    /// In responses.
    presence: Presence,
    /// In responses.
    nullable: bool,
    /// The JSON Schema of the member in requests, where it differs from responses.
    request_schema: Option<&'static str>,
    description: &'static str,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug)]
enum Range {
    Text,
    /// One of a closed set of strings.
    Enum(&'static Enumeration),
    Boolean,
    Integer,
    Decimal,
    /// A string such as `2020-04-02T12:00:00+02:00`.
    Instant,
    /// A string with a URL, stored unchanged.
    Url,
    /// A string with the IRI of a resource.
    Link(Option<&'static Class>),
    /// A string with the IRI of a collection of resources of a class.
    Collection(&'static Class),
    /// An object of a class.
    Object(&'static Class),
    /// An object of one of these classes.
    AnyOf(&'static [&'static Class]),
    /// The English name of a day of the week, a term of schema.org.
    DayOfWeek,
    /// `BasicRepresentation`, a term of Hydra.
    VariableRepresentation,
    /// JSON with keys chosen by the client.
    Json,
}

/// A closed set of strings.
#[derive(Debug)]
struct Enumeration {
    /// The name of its JSON Schema.
    name: &'static str,
    description: &'static str,
    values: &'static [&'static str],
}

/// Whether a field has one value, an unordered set or an ordered list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cardinality {
    One,
    Set,
    List,
}

/// Whether a member is in responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Always,
    /// In some responses, and never null there.
    Optional,
    Never,
}

/// Whether a field is in responses, in requests, or in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Both,
}

impl Iri {
    fn expand(self, public_url: &str) -> String {
        match self {
            Self::SchemaOrg(term) => format!("{SCHEMA_ORG}{term}"),
            Self::Hydra(term) => format!("{HYDRA}{term}"),
            Self::Api(term) => format!("{public_url}{DOCUMENTATION}#{term}"),
        }
    }
}

impl Class {
    /// The usual values of a resource.
    const RESOURCE: Self = Self {
        name: "",
        iri: None,
        type_name: TypeName::Term,
        id_presence: Presence::Always,
        description: "",
        fields: &[],
    };
    /// The usual values of objects that are only parts of resources.
    const EMBEDDED: Self = Self {
        type_name: TypeName::None,
        id_presence: Presence::Never,
        ..Self::RESOURCE
    };

    fn iri(&self) -> Iri {
        self.iri.unwrap_or(Iri::Api(self.name))
    }
}

impl Field {
    const ID: Self = Self::new("id", Range::Text)
        .with_iri(Iri::SchemaOrg("identifier"))
        .description("The last segment of `@id`.");
    const NAME: Self = Self::new("name", Range::Text)
        .schema_org()
        .description("The display name.");

    fn iri(&self) -> Iri {
        self.iri
            .unwrap_or_else(|| match self.name.strip_prefix("hydra:") {
                Some(term) => Iri::Hydra(term),
                None => Iri::Api(self.name),
            })
    }

    const fn new(name: &'static str, range: Range) -> Self {
        Self {
            name,
            iri: None,
            range,
            cardinality: Cardinality::One,
            access: Access::Read,
            required: false,
            presence: Presence::Always,
            nullable: false,
            request_schema: None,
            description: "",
        }
    }

    const fn with_iri(mut self, iri: Iri) -> Self {
        self.iri = Some(iri);
        self
    }

    /// Uses the term of schema.org with the field's name.
    const fn schema_org(self) -> Self {
        let name = self.name;
        self.with_iri(Iri::SchemaOrg(name))
    }

    const fn set(mut self) -> Self {
        self.cardinality = Cardinality::Set;
        self
    }

    const fn list(mut self) -> Self {
        self.cardinality = Cardinality::List;
        self
    }

    const fn writable(mut self) -> Self {
        self.access = Access::Both;
        self
    }

    const fn write_only(mut self) -> Self {
        self.access = Access::Write;
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Absent from some responses.
    const fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// Null in responses without a value.
    const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Writable, with this JSON Schema in requests.
    const fn accepts(mut self, schema: &'static str) -> Self {
        self.request_schema = Some(schema);
        match self.access {
            Access::Read | Access::Both => self.writable(),
            Access::Write => self,
        }
    }

    const fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }
}

/// Parses a JSON text of the tables.
fn parse_json<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("a test parses every JSON text of the tables")
}
