//! Access tokens, the API's description of itself, and health checks.

use super::{Auth, DEFAULT, Expects, Operation, Returns};
use crate::{
    api_description::{DOCUMENTATION, OPENAPI, classes::api::ENTRYPOINT},
    error_codes as codes,
};

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
        returns: Returns::Document(&["application/json"], "AccessToken"),
        ..DEFAULT
    },
    Operation {
        path: "/.well-known/oauth-authorization-server",
        operation_id: "getAuthorizationServerMetadata",
        summary: "Get the metadata of the authorization server",
        description: "Where and how to get an access token (RFC 8414), for OAuth clients that \
            discover it.",
        tag: "Access tokens",
        returns: Returns::Document(&["application/json"], "AuthorizationServerMetadata"),
        ..DEFAULT
    },
    Operation {
        path: "/oauth2/jwks",
        operation_id: "listPublicKeys",
        summary: "List the keys that verify access tokens",
        description: "A JSON Web Key Set (RFC 7517), for programs that verify access tokens \
            themselves.",
        tag: "Access tokens",
        returns: Returns::Document(&["application/jwk-set+json"], "JsonWebKeySet"),
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
        returns: Returns::JsonLd("JsonLdContext"),
        ..DEFAULT
    },
    Operation {
        path: DOCUMENTATION,
        operation_id: "getHydraDocumentation",
        summary: "Get the Hydra documentation of the API",
        description: "The classes and operations of the API, for Hydra clients.",
        tag: "API",
        returns: Returns::JsonLd("HydraDocumentation"),
        ..DEFAULT
    },
    Operation {
        path: OPENAPI,
        operation_id: "getOpenApi",
        summary: "Get the OpenAPI document of the API",
        description: "This document.",
        tag: "API",
        returns: Returns::Document(&["application/json"], "OpenApiDocument"),
        ..DEFAULT
    },
    Operation {
        path: "/api/docs",
        operation_id: "getDocsPage",
        summary: "Get the interactive documentation page",
        description: "For people. Programs read `/api/docs.json`.",
        tag: "API",
        returns: Returns::Text(&["text/html"]),
        ..DEFAULT
    },
    Operation {
        path: "/api/docs/{asset}",
        operation_id: "getDocsPageFile",
        summary: "Get a file of the documentation page",
        description: "Its style sheets, scripts and guides.",
        tag: "API",
        returns: Returns::Text(&["text/html", "text/css", "text/javascript", "text/plain"]),
        ..DEFAULT
    },
    Operation {
        path: "/errors",
        operation_id: "listErrors",
        summary: "List the error codes",
        description: "A page with a link to the page of each error code, violation code and warning code.",
        tag: "API",
        returns: Returns::Text(&["text/html"]),
        ..DEFAULT
    },
    Operation {
        path: "/errors/{code}",
        operation_id: "explainError",
        summary: "Get the page of an error code",
        description: "The page that the `type` of an error links to: meaning, cause, solution and \
            an example. Violation codes and warning codes have pages too.",
        tag: "API",
        returns: Returns::Text(&["text/html"]),
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
