//! The API's description of itself: tables of classes, members and operations, from which the
//! routes, the JSON-LD contexts, the Hydra documentation and the OpenAPI document are made.

mod classes;
mod context;
mod documentation;
mod openapi;
pub(crate) mod operations;

use serde::de::DeserializeOwned;

pub(crate) use classes::{Access, Class, DAYS, Range, find as class};
pub(crate) use context::context;
pub(crate) use documentation::api_documentation;
pub(crate) use openapi::{SCOPES, error_example, openapi, violation_example};

const SCHEMA_ORG: &str = "http://schema.org/";
const HYDRA: &str = "http://www.w3.org/ns/hydra/core#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Path of the Hydra documentation; the IRIs of the API's own terms begin with it.
pub(crate) const DOCUMENTATION: &str = "/api/docs.jsonld";

/// Parses a JSON text of the program.
fn parse_json<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("a test parses every JSON text of the program")
}
