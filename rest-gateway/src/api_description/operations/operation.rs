//! The description of an operation: its request, its response and its documentation.

use super::parameters::Parameter;
use crate::{api_description::Class, error_codes::ErrorCode};

/// An operation of the API: a method on a path.
#[expect(clippy::struct_field_names, reason = "`operationId` is OpenAPI's term")]
#[derive(Debug)]
pub(crate) struct Operation {
    pub(in crate::api_description) target: HydraTarget,
    pub(crate) method: &'static str,
    /// With `{…}` for each parameter.
    pub(crate) path: &'static str,
    /// A verb and its object; generated clients name their functions after it.
    pub(crate) operation_id: &'static str,
    /// What it does, in one line.
    pub(in crate::api_description) summary: &'static str,
    /// Details.
    pub(in crate::api_description) description: &'static str,
    /// The heading it is listed under.
    pub(in crate::api_description) tag: &'static str,
    pub(in crate::api_description) auth: Auth,
    /// Parameters in the query and the headers; `path` lists those in the path.
    pub(in crate::api_description) parameters: &'static [Parameter],
    pub(crate) expects: Expects,
    pub(crate) returns: Returns,
    /// Error codes in addition to those derived from the other fields; see `error_codes.rs`.
    pub(in crate::api_description) error_codes: &'static [&'static ErrorCode],
}

/// Where the Hydra documentation lists an operation.
#[derive(Debug)]
pub(in crate::api_description) enum HydraTarget {
    /// Under the class: its target is the `@id` of the resource.
    Resource(&'static Class),
    /// Under the entrypoint's link to a collection.
    Collection(&'static str),
    /// Under the class, with the path as an explicit target.
    Path(&'static Class),
    /// Nowhere.
    None,
}

/// The credentials an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api_description) enum Auth {
    None,
    /// An API key and its secret.
    ClientCredentials,
    /// An access token with any scope.
    Token,
    /// An access token of a client that has a store.
    StoreToken,
    /// An access token with this scope.
    Scope(&'static str),
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expects {
    /// No body.
    Nothing,
    /// A resource, with an example.
    Resource(&'static Class, &'static str),
    /// A resource, with an example; or no body.
    Optional(&'static Class, &'static str),
    /// `{}`, or no body.
    EmptyObject,
    /// The form of a token request.
    Form,
}

/// The response of a successful request.
#[derive(Clone, Copy, Debug)]
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
    Nothing,
    /// 200, JSON-LD; the name of the JSON Schema.
    JsonLd(&'static str),
    /// 200, without content negotiation: the media types and the name of the JSON Schema.
    Document(&'static [&'static str], &'static str),
    /// 200, without content negotiation: a text of these media types.
    Text(&'static [&'static str]),
    /// 200, plain text of a health check.
    Health,
}

impl Returns {
    pub(in crate::api_description) fn status(self) -> u16 {
        match self {
            Self::Created(_) => 201,
            Self::Nothing => 204,
            Self::Resource(_)
            | Self::Preview(_)
            | Self::Collection(_)
            | Self::JsonLd(_)
            | Self::Document(..)
            | Self::Text(_)
            | Self::Health => 200,
        }
    }

    /// Whether `Accept` chooses the media type.
    pub(crate) fn is_negotiated(self) -> bool {
        !self.is_fixed() && !matches!(self, Self::Nothing)
    }

    /// Whether the operation alone decides the media type: `Accept` is ignored.
    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, Self::Document(..) | Self::Text(_) | Self::Health)
    }
}

impl Operation {
    /// The values of the fields that an operation of a group does not set.
    pub(super) const fn default(tag: &'static str, auth: Auth) -> Self {
        Self {
            target: HydraTarget::None,
            method: "GET",
            path: "",
            operation_id: "",
            summary: "",
            description: "",
            tag,
            auth,
            parameters: &[],
            expects: Expects::Nothing,
            returns: Returns::Nothing,
            error_codes: &[],
        }
    }

    /// Whether it requires an access token.
    pub(crate) fn requires_token(&self) -> bool {
        matches!(self.auth, Auth::Token | Auth::StoreToken | Auth::Scope(_))
    }

    /// The names of its query parameters.
    pub(crate) fn query_parameters(&self) -> Vec<&'static str> {
        self.parameters
            .iter()
            .filter(|parameter| parameter.location == "query")
            .map(|parameter| parameter.name)
            .collect()
    }

    /// The parameters that filter its list.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &'static Parameter> {
        let parameters = self.parameters.iter();
        parameters.filter(|parameter| !parameter.property.is_empty())
    }

    /// Whether it counts against the caller's rate limits.
    pub(in crate::api_description) fn is_rate_limited(&self) -> bool {
        self.auth == Auth::ClientCredentials
            || self.path == "/api"
            || self.path.starts_with("/api/")
    }

    /// Whether it takes an `Idempotency-Key`.
    pub(crate) fn accepts_idempotency_key(&self) -> bool {
        self.parameters
            .iter()
            .any(|parameter| parameter.name == Parameter::IDEMPOTENCY_KEY.name)
    }

    /// Whether its response has an `ETag`.
    pub(in crate::api_description) fn has_etag(&self) -> bool {
        self.method == "GET" && !matches!(self.returns, Returns::Health)
    }
}
