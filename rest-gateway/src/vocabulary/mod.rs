//! What the terms of the API mean and what can be asked of it: tables of classes, fields and
//! operations, from which the JSON-LD contexts, the Hydra and the OpenAPI documentation are made.

mod classes;
mod context;
mod documentation;
mod openapi;
mod operations;

use serde_json::{Map, Value};

pub(crate) use context::context;
pub(crate) use documentation::api_documentation;
pub(crate) use openapi::openapi;
#[cfg(test)]
pub(crate) use operations::{hydra_method_and_path, method_and_path};

const SCHEMA: &str = "http://schema.org/";
const HYDRA: &str = "http://www.w3.org/ns/hydra/core#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Where the documentation is; the IRIs of our own terms begin with it.
pub(crate) const DOCUMENTATION: &str = "/api/docs.jsonld";

/// Where the OpenAPI documentation is.
pub(crate) const OPENAPI: &str = "/api/docs.json";

/// A kind of object that answers contain or are.
#[derive(Debug)]
struct Class {
    /// The last part of its context's path, if it has one.
    name: &'static str,
    iri: Iri,
    named: Named,
    /// Whether its objects have an `@id`.
    identified: Presence,
    about: &'static str,
    fields: &'static [Field],
}

/// How the objects of a class say in answers that they are of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// `@type` is the class's name.
    Term,
    /// `@type` is its IRI, in full or with a prefix.
    Iri,
    /// Not at all: there is no `@type`.
    Not,
}

/// What identifies a class or a property everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Iri {
    /// A term of schema.org's.
    Schema(&'static str),
    /// A term of Hydra's.
    Hydra(&'static str),
    /// A term of our own vocabulary.
    Own(&'static str),
}

/// A member of a class's objects.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    iri: Iri,
    range: Range,
    many: Many,
    access: Access,
    /// In requests.
    required: bool,
    /// In answers.
    presence: Presence,
    /// In answers.
    nullable: bool,
    /// The values it may have in answers; any, if none are listed.
    values: &'static [&'static str],
    /// The JSON Schema of what requests may have here, if that is not what answers have.
    sent_as: Option<&'static str>,
    about: &'static str,
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug)]
enum Range {
    Text,
    Boolean,
    Integer,
    Decimal,
    /// A text like `2020-04-02T12:00:00+02:00`.
    Instant,
    /// A text that is a URL, kept as it was sent.
    Url,
    /// A text that is the IRI of a resource.
    Link(Option<&'static Class>),
    /// A text that is the IRI of a collection of resources of a class.
    Collection(&'static Class),
    /// An object.
    Object(&'static Class),
    /// An object of one of these classes.
    AnyOf(&'static [&'static Class]),
    /// A day of the week by its English name, which schema.org has terms for.
    DayOfWeek,
    /// Any JSON, whose keys are the client's.
    Json,
}

/// How many values a field has, and whether their order means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Many {
    One,
    Set,
    List,
}

/// Whether something is there in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Always,
    /// In some, and never null there.
    Sometimes,
    Never,
}

/// Where a field stands: in answers, in requests, or in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Both,
}

impl Iri {
    fn in_full(self, public_url: &str) -> String {
        match self {
            Self::Schema(term) => format!("{SCHEMA}{term}"),
            Self::Hydra(term) => format!("{HYDRA}{term}"),
            Self::Own(term) => format!("{public_url}{DOCUMENTATION}#{term}"),
        }
    }
}

impl Field {
    const fn new(name: &'static str, range: Range) -> Self {
        Self {
            name,
            iri: Iri::Own(name),
            range,
            many: Many::One,
            access: Access::Read,
            required: false,
            presence: Presence::Always,
            nullable: false,
            values: &[],
            sent_as: None,
            about: "",
        }
    }

    const fn means(mut self, iri: Iri) -> Self {
        self.iri = iri;
        self
    }

    /// The term of schema.org that has the field's own name.
    const fn schema(self) -> Self {
        let name = self.name;
        self.means(Iri::Schema(name))
    }

    const fn set(mut self) -> Self {
        self.many = Many::Set;
        self
    }

    const fn list(mut self) -> Self {
        self.many = Many::List;
        self
    }

    const fn writeable(mut self) -> Self {
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

    /// Not in every answer.
    const fn sometimes(mut self) -> Self {
        self.presence = Presence::Sometimes;
        self
    }

    /// Null in answers when there is nothing to say.
    const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.values = values;
        self
    }

    /// What requests may have here, as a JSON Schema.
    const fn sent_as(mut self, schema: &'static str) -> Self {
        self.sent_as = Some(schema);
        self
    }

    const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// A JSON object of these members.
fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
