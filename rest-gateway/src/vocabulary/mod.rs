//! What the terms of the API mean: tables of classes and fields, from which the JSON-LD contexts
//! and the Hydra documentation are made.

mod classes;
mod context;
mod documentation;
mod operations;

use serde_json::{Map, Value};

pub(crate) use context::context;
pub(crate) use documentation::api_documentation;
#[cfg(test)]
pub(crate) use operations::method_and_path;

const SCHEMA: &str = "http://schema.org/";
const HYDRA: &str = "http://www.w3.org/ns/hydra/core#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Where the documentation is; the IRIs of our own terms begin with it.
pub(crate) const DOCUMENTATION: &str = "/api/docs.jsonld";

/// A kind of object that answers contain or are.
#[derive(Debug)]
struct Class {
    /// The last part of its context's path, if it has one.
    name: &'static str,
    iri: Iri,
    named: Named,
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
    required: bool,
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
