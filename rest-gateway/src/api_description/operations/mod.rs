//! The table of the API's operations: the request, the response and the documentation of each.

mod possible_errors;

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

pub(super) use self::possible_errors::error_codes_by_status;
use super::{Class, parse_json};
use crate::{
    representation::error_codes::{self, ErrorCode},
    resources::tracking,
};

static OPERATIONS: LazyLock<Vec<Operation>> =
    LazyLock::new(|| parse_json(include_str!("operations.json")));

/// Every operation, by tag, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter()
}

/// An operation of the API: a method on a path.
#[expect(clippy::struct_field_names, reason = "`operationId` is OpenAPI's term")]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Operation {
    #[serde(default)]
    pub(super) target: HydraTarget,
    pub(crate) method: String,
    /// With `{…}` for each parameter.
    pub(crate) path: String,
    /// A verb and its object; generated clients name their functions after it.
    pub(crate) operation_id: String,
    /// What it does, in one line.
    #[serde(default)]
    pub(super) summary: String,
    #[serde(default)]
    pub(super) description: String,
    /// The heading it is listed under.
    #[serde(default)]
    pub(super) tag: String,
    #[serde(default)]
    pub(super) auth: Auth,
    /// Parameters in the query and the headers; `path` lists those in the path.
    #[serde(default)]
    pub(super) parameters: Vec<&'static Parameter>,
    #[serde(default)]
    pub(crate) expects: Expects,
    #[serde(default)]
    pub(crate) returns: Returns,
    /// Error codes in addition to those derived from the other fields; see `possible_errors.rs`.
    #[serde(default)]
    pub(super) error_codes: Vec<&'static ErrorCode>,
}

/// Where the Hydra documentation lists an operation.
#[derive(Debug, Default, Deserialize)]
pub(super) enum HydraTarget {
    /// Under the class: its target is the `@id` of the resource.
    Resource(&'static Class),
    /// Under the entrypoint's link to a collection.
    Collection(String),
    /// Under the class, with the path as an explicit target.
    Path(&'static Class),
    /// Nowhere.
    #[default]
    None,
}

/// The credentials an operation requires.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Auth {
    #[default]
    None,
    /// An API key and its secret.
    ClientCredentials,
    /// An access token with any scope.
    Token,
    /// An access token of a client that has a store.
    StoreToken,
    /// An access token with this scope.
    Scope(String),
    /// An access token with one of these scopes, first that of most clients.
    AnyScope(Vec<String>),
}

/// The body of a request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) enum Expects {
    /// No body.
    #[default]
    Nothing,
    /// A resource.
    Resource(&'static Class),
    /// A resource, or no body.
    Optional(&'static Class),
    /// `{}`, or no body.
    EmptyObject,
    /// The form of a token request.
    Form,
    /// A form with an image.
    Image,
}

/// The response of a successful request.
#[derive(Debug, Default, Deserialize)]
pub(crate) enum Returns {
    /// 200.
    Resource(&'static Class),
    /// 201, and `Location`.
    Created(&'static Class),
    /// 200, a resource that is not stored.
    Preview(&'static Class),
    /// 200, a collection of resources of this class.
    Collection(&'static Class),
    /// 204.
    #[default]
    Nothing,
    /// 200, JSON-LD; the name of the JSON Schema.
    JsonLd(String),
    /// 200, without content negotiation: the media type and the name of the JSON Schema.
    Document(String, String),
    /// 200, without content negotiation: a text of these media types.
    Text(Vec<String>),
    /// 200, a page that core answers for: HTML, also of the errors 404 and 410.
    Page,
    /// 200, an image that core answers for, of one of these media types.
    Image(Vec<String>),
    /// 200, plain text of a health check.
    Health,
}

/// A parameter in the path, the query or the headers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameter {
    /// As which operations list it; by default its name, which others may have too.
    key: Option<String>,
    pub(crate) name: String,
    /// `path`, `query` or `header`.
    #[serde(rename = "in")]
    pub(super) location: String,
    pub(super) description: String,
    /// The JSON Schema of a value.
    pub(super) schema: Value,
    /// Whether it may occur several times, for several values.
    #[serde(default, rename = "repeatable")]
    pub(crate) is_repeatable: bool,
    /// The member that it filters a list by; empty if it is no filter.
    #[serde(default)]
    pub(crate) property: String,
}

static PARAMETERS: LazyLock<Vec<Parameter>> =
    LazyLock::new(|| parse_json(include_str!("parameters.json")));

impl Returns {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Created(_) => 201,
            Self::Nothing => 204,
            Self::Resource(_)
            | Self::Preview(_)
            | Self::Collection(_)
            | Self::JsonLd(_)
            | Self::Document(..)
            | Self::Text(_)
            | Self::Page
            | Self::Image(_)
            | Self::Health => 200,
        }
    }

    /// Whether `Accept` chooses the media type.
    pub(crate) fn is_negotiated(&self) -> bool {
        !self.is_fixed() && !matches!(self, Self::Nothing)
    }

    /// Whether the operation alone decides the media type: `Accept` is ignored.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(
            self,
            Self::Document(..) | Self::Text(_) | Self::Page | Self::Image(_) | Self::Health
        )
    }
}

impl Operation {
    pub(crate) fn requires_token(&self) -> bool {
        !matches!(self.auth, Auth::None | Auth::ClientCredentials)
    }

    pub(crate) fn query_parameters(&self) -> Vec<&'static str> {
        self.parameters
            .iter()
            .filter(|parameter| parameter.location == "query")
            .map(|parameter| parameter.name.as_str())
            .collect()
    }

    /// The parameters that filter its list.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &'static Parameter> {
        let parameters = self.parameters.iter().copied();
        parameters.filter(|parameter| !parameter.property.is_empty())
    }

    /// Whether it counts against the caller's rate limits.
    pub(super) fn is_rate_limited(&self) -> bool {
        self.auth == Auth::ClientCredentials
            || self.path == "/api"
            || self.path.starts_with("/api/")
            || self.path.starts_with(tracking::PAGES)
    }

    /// Whether it is a read that always has a response: of a document, or a health check.
    pub(crate) fn is_exempt_from_limit(&self) -> bool {
        let is_of_core = matches!(self.returns, Returns::Page | Returns::Image(_));
        self.method == "GET" && self.returns.is_fixed() && !is_of_core
    }

    pub(crate) fn accepts_idempotency_key(&self) -> bool {
        self.has_parameter("Idempotency-Key")
    }

    pub(super) fn has_parameter(&self, name: &str) -> bool {
        self.parameters
            .iter()
            .any(|parameter| parameter.name == name)
    }

    pub(super) fn has_etag(&self) -> bool {
        self.method == "GET" && !matches!(self.returns, Returns::Health)
    }
}

impl Parameter {
    fn key(&self) -> &str {
        self.key.as_ref().unwrap_or(&self.name)
    }
}

/// The parameter with a key; the keys are unique.
pub(super) fn parameter(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key() == key)
}

impl<'de> Deserialize<'de> for &'static Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        parameter(&name).ok_or_else(|| D::Error::custom(format!("no parameter is named {name}")))
    }
}

impl<'de> Deserialize<'de> for &'static ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        error_codes::find(&code).ok_or_else(|| D::Error::custom(format!("no error is {code}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn parameter_keys_are_unique() {
        let keys: BTreeSet<_> = PARAMETERS.iter().map(Parameter::key).collect();

        assert_eq!(keys.len(), PARAMETERS.len());
    }

    #[test]
    fn every_parameter_that_a_path_names_has_one_row_with_that_location() {
        for operation in all() {
            for part in operation.path.split('{').skip(1) {
                let (name, _) = part.split_once('}').unwrap();
                let rows = PARAMETERS
                    .iter()
                    .filter(|row| row.name == name && row.location == "path");
                assert_eq!(rows.count(), 1, "{name} in {}", operation.path);
            }
        }
    }

    #[test]
    fn the_hydra_documentation_lists_every_resource_and_no_other() {
        const DOCUMENTATION_PATHS: [&str; 3] = ["/api", "/api/contexts/{name}", "/api/docs.jsonld"];

        for operation in all() {
            let is_resource = !operation.returns.is_fixed()
                && !DOCUMENTATION_PATHS.contains(&operation.path.as_str());
            let is_listed = !matches!(operation.target, HydraTarget::None);

            assert_eq!(is_listed, is_resource, "{}", operation.operation_id);
        }
    }
}
