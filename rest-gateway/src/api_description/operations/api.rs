//! Access tokens, the API's description of itself, and health checks.

use super::{Auth, DEFAULT, Expects, Operation, Returns};
use crate::{
    api_description::{DOCUMENTATION, OPENAPI, classes::api::ENTRYPOINT},
    error_codes as codes,
};

const TEXT: &str = r#"{"type": "string"}"#;

pub(super) static ACCESS_TOKENS: &[Operation] = &[
    Operation {
        method: "POST",
        path: "/oauth2/token",
        operation_id: "issueToken",
        summary: "Issue an access token",
        description: "The OAuth 2.0 client credentials grant (RFC 6749 §4.4). Send the API key \
            and its secret by HTTP Basic, or as `client_id` and `client_secret` in the form.",
        tag: "Access tokens",
        auth: Auth::ClientCredentials,
        expects: Expects::Form,
        returns: Returns::Document(
            &["application/json"],
            r#"{
                "type": "object",
                "properties": {
                    "access_token": {"type": "string", "description": "A JSON Web Token. Send it as `Authorization: Bearer <access_token>`."},
                    "token_type": {"type": "string", "const": "Bearer"},
                    "expires_in": {"type": "integer", "minimum": 1, "description": "Seconds."},
                    "scope": {"type": "string", "description": "The granted scopes, separated by spaces."}
                },
                "required": ["access_token", "token_type", "expires_in", "scope"]
            }"#,
        ),
        ..DEFAULT
    },
    Operation {
        path: "/.well-known/oauth-authorization-server",
        operation_id: "getAuthorizationServerMetadata",
        summary: "Get the metadata of the authorization server",
        description: "Where and how to get an access token (RFC 8414), for OAuth clients that \
            discover it.",
        tag: "Access tokens",
        returns: Returns::Document(
            &["application/json"],
            r#"{
                "type": "object",
                "properties": {
                    "issuer": {"type": "string", "format": "uri"},
                    "token_endpoint": {"type": "string", "format": "uri"},
                    "jwks_uri": {"type": "string", "format": "uri"},
                    "scopes_supported": {"type": "array", "items": {"type": "string"}},
                    "response_types_supported": {"type": "array", "items": {"type": "string"}},
                    "grant_types_supported": {"type": "array", "items": {"type": "string"}},
                    "token_endpoint_auth_methods_supported": {"type": "array", "items": {"type": "string"}},
                    "service_documentation": {"type": "string", "format": "uri"}
                },
                "required": ["issuer", "token_endpoint", "jwks_uri", "response_types_supported"]
            }"#,
        ),
        ..DEFAULT
    },
    Operation {
        path: "/oauth2/jwks",
        operation_id: "listPublicKeys",
        summary: "List the keys that verify access tokens",
        description: "A JSON Web Key Set (RFC 7517), for programs that verify access tokens \
            themselves.",
        tag: "Access tokens",
        returns: Returns::Document(
            &["application/jwk-set+json"],
            r#"{
                "type": "object",
                "properties": {
                    "keys": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"kty": {"type": "string"}, "kid": {"type": "string"}},
                            "required": ["kty", "kid"],
                            "additionalProperties": true
                        }
                    }
                },
                "required": ["keys"]
            }"#,
        ),
        error_codes: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..DEFAULT
    },
];

pub(super) static API: &[Operation] = &[
    Operation {
        path: "/api",
        operation_id: "getEntrypoint",
        summary: "Get the entrypoint",
        description: "The IRIs of the API's collections.",
        tag: "API",
        returns: Returns::Resource(&ENTRYPOINT),
        ..DEFAULT
    },
    Operation {
        path: "/api/contexts/{name}",
        operation_id: "getContext",
        summary: "Get a JSON-LD context",
        description: "Maps the members of a resource to IRIs, for JSON-LD processors.",
        tag: "API",
        returns: Returns::JsonLd(
            r#"{
                "type": "object",
                "properties": {"@context": {"type": "object", "additionalProperties": true}},
                "required": ["@context"]
            }"#,
        ),
        ..DEFAULT
    },
    Operation {
        path: DOCUMENTATION,
        operation_id: "getHydraDocumentation",
        summary: "Get the Hydra documentation of the API",
        description: "The classes and operations of the API, for Hydra clients.",
        tag: "API",
        returns: Returns::JsonLd(
            r#"{
                "type": "object",
                "properties": {
                    "@id": {"type": "string"},
                    "@type": {"const": "hydra:ApiDocumentation"}
                },
                "required": ["@context", "@id", "@type", "hydra:supportedClass"],
                "additionalProperties": true
            }"#,
        ),
        ..DEFAULT
    },
    Operation {
        path: OPENAPI,
        operation_id: "getOpenApi",
        summary: "Get the OpenAPI document of the API",
        description: "This document.",
        tag: "API",
        returns: Returns::Document(
            &["application/json"],
            r#"{
                "type": "object",
                "properties": {"openapi": {"type": "string"}},
                "required": ["openapi", "info", "paths", "components"],
                "additionalProperties": true
            }"#,
        ),
        ..DEFAULT
    },
    Operation {
        path: "/api/docs",
        operation_id: "getDocsPage",
        summary: "Get the interactive documentation page",
        description: "For people. Programs read `/api/docs.json`.",
        tag: "API",
        returns: Returns::Document(&["text/html"], TEXT),
        ..DEFAULT
    },
    Operation {
        path: "/api/docs/{file}",
        operation_id: "getDocsPageFile",
        summary: "Get a file of the documentation page",
        description: "Its style sheets, scripts and guides.",
        tag: "API",
        returns: Returns::Document(
            &["text/html", "text/css", "text/javascript", "text/plain"],
            TEXT,
        ),
        ..DEFAULT
    },
    Operation {
        path: "/errors/{code}",
        operation_id: "explainError",
        summary: "Explain an error code",
        description: "The page that the `type` of an error links to: its meaning, cause and \
            solution.",
        tag: "API",
        returns: Returns::Document(&["text/html"], TEXT),
        ..DEFAULT
    },
    Operation {
        path: "/healthz",
        operation_id: "isLive",
        summary: "Check that the gateway runs",
        description: "Succeeds while the process runs.",
        tag: "API",
        returns: Returns::Health,
        ..DEFAULT
    },
    Operation {
        path: "/readyz",
        operation_id: "isReady",
        summary: "Check that the gateway reaches a core",
        description: "Fails while no core with a usable database can be reached, and while the gateway shuts down.",
        tag: "API",
        returns: Returns::Health,
        error_codes: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..DEFAULT
    },
];
