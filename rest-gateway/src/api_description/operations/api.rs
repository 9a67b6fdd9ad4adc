//! Access tokens, the API's description of itself, and health checks.

use super::operation::{Auth, Expects, Operation, Returns};
use crate::{
    api_description::{DOCUMENTATION, OPENAPI, classes::api::ENTRYPOINT},
    error_codes as codes,
};

const ACCESS_TOKENS_DEFAULT: Operation = Operation::default("Access tokens", Auth::None);

pub(super) static ACCESS_TOKENS: &[Operation] = &[
    Operation {
        method: "POST",
        path: "/oauth2/token",
        operation_id: "issueToken",
        summary: "Issue an access token",
        description: "The OAuth 2.0 client credentials grant (RFC 6749 §4.4). Send the API key \
            and its secret by HTTP Basic, or as `client_id` and `client_secret` in the form.",
        auth: Auth::ClientCredentials,
        expects: Expects::Form,
        returns: Returns::Document(&["application/json"], "AccessToken"),
        ..ACCESS_TOKENS_DEFAULT
    },
    Operation {
        path: "/.well-known/oauth-authorization-server",
        operation_id: "getAuthorizationServerMetadata",
        summary: "Get the metadata of the authorization server",
        description: "Where and how to get an access token (RFC 8414), for OAuth clients that \
            discover it.",
        returns: Returns::Document(&["application/json"], "AuthorizationServerMetadata"),
        ..ACCESS_TOKENS_DEFAULT
    },
    Operation {
        path: "/oauth2/jwks",
        operation_id: "listPublicKeys",
        summary: "List the keys that verify access tokens",
        description: "A JSON Web Key Set (RFC 7517), for programs that verify access tokens \
            themselves.",
        returns: Returns::Document(&["application/jwk-set+json"], "JsonWebKeySet"),
        error_codes: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..ACCESS_TOKENS_DEFAULT
    },
];

const API_DEFAULT: Operation = Operation::default("API", Auth::None);

pub(super) static API: &[Operation] = &[
    Operation {
        path: "/api",
        operation_id: "getEntrypoint",
        summary: "Get the entrypoint",
        description: "The IRIs of the API's collections.",
        returns: Returns::Resource(&ENTRYPOINT),
        ..API_DEFAULT
    },
    Operation {
        path: "/api/contexts/{name}",
        operation_id: "getContext",
        summary: "Get a JSON-LD context",
        description: "Maps the members of a resource to IRIs, for JSON-LD processors.",
        returns: Returns::JsonLd("JsonLdContext"),
        ..API_DEFAULT
    },
    Operation {
        path: DOCUMENTATION,
        operation_id: "getHydraDocumentation",
        summary: "Get the Hydra documentation of the API",
        description: "The classes and operations of the API, for Hydra clients.",
        returns: Returns::JsonLd("HydraDocumentation"),
        ..API_DEFAULT
    },
    Operation {
        path: OPENAPI,
        operation_id: "getOpenApi",
        summary: "Get the OpenAPI document of the API",
        description: "This document.",
        returns: Returns::Document(&["application/json"], "OpenApiDocument"),
        ..API_DEFAULT
    },
    Operation {
        path: "/api/docs",
        operation_id: "getDocsPage",
        summary: "Get the interactive documentation page",
        description: "For people. Programs read `/api/docs.json`.",
        returns: Returns::Text(&["text/html"]),
        ..API_DEFAULT
    },
    Operation {
        path: "/api/docs/{asset}",
        operation_id: "getDocsPageFile",
        summary: "Get a file of the documentation page",
        description: "Its style sheets, scripts and guides.",
        returns: Returns::Text(&["text/html", "text/css", "text/javascript", "text/plain"]),
        ..API_DEFAULT
    },
    Operation {
        path: "/errors",
        operation_id: "listErrors",
        summary: "List the error codes",
        description: "A page with a link to the page of each error code, violation code and warning code.",
        returns: Returns::Text(&["text/html"]),
        ..API_DEFAULT
    },
    Operation {
        path: "/errors/{code}",
        operation_id: "explainError",
        summary: "Get the page of an error code",
        description: "The page that the `type` of an error links to: meaning, cause, solution and \
            an example. Violation codes and warning codes have pages too.",
        returns: Returns::Text(&["text/html"]),
        ..API_DEFAULT
    },
    Operation {
        path: "/healthz",
        operation_id: "isLive",
        summary: "Check that the gateway runs",
        description: "Succeeds while the process runs.",
        returns: Returns::Health,
        ..API_DEFAULT
    },
    Operation {
        path: "/readyz",
        operation_id: "isReady",
        summary: "Check that the gateway reaches a core",
        description: "Fails while no core with a usable database can be reached, and while the gateway shuts down.",
        returns: Returns::Health,
        error_codes: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..API_DEFAULT
    },
];

/// Only the demo serves it, so no document describes it.
pub(crate) static DEMO: Operation = Operation {
    method: "POST",
    path: "/api/demo/deliveries/{id}/complete",
    operation_id: "completeDemoDelivery",
    returns: Returns::JsonLd(""),
    ..API_DEFAULT
};
