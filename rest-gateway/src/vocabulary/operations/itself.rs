//! What the API says of itself, and how it is.

use super::{Operation, READ, Returns};
use crate::{
    error_codes as codes,
    vocabulary::{DOCUMENTATION, OPENAPI, classes::api::ENTRYPOINT},
};

const SUBJECT: &str = "The API itself";

const TEXT: &str = r#"{"type": "string"}"#;

pub(super) static ALL: &[Operation] = &[
    Operation {
        path: "/api",
        id: "getEntrypoint",
        title: "Reads where everything begins",
        about: "The names of the collections and their addresses.",
        subject: SUBJECT,
        returns: Returns::Resource(&ENTRYPOINT),
        ..READ
    },
    Operation {
        path: "/api/contexts/{name}",
        id: "getContext",
        title: "Reads a JSON-LD context",
        about: "What the members of a resource mean, for JSON-LD processors.",
        subject: SUBJECT,
        returns: Returns::JsonLd(
            r#"{
                "type": "object",
                "properties": {"@context": {"type": "object", "additionalProperties": true}},
                "required": ["@context"]
            }"#,
        ),
        ..READ
    },
    Operation {
        path: DOCUMENTATION,
        id: "getHydraDocumentation",
        title: "Reads the API's documentation in the words of Hydra",
        subject: SUBJECT,
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
        ..READ
    },
    Operation {
        path: OPENAPI,
        id: "getOpenApi",
        title: "Reads the API's documentation in the words of OpenAPI",
        about: "This document.",
        subject: SUBJECT,
        returns: Returns::Document(
            &["application/json"],
            r#"{
                "type": "object",
                "properties": {"openapi": {"type": "string"}},
                "required": ["openapi", "info", "paths", "components"],
                "additionalProperties": true
            }"#,
        ),
        ..READ
    },
    Operation {
        path: "/api/docs",
        id: "getDocsPage",
        title: "Shows the page on which the API can be read and tried",
        subject: SUBJECT,
        returns: Returns::Document(&["text/html"], TEXT),
        ..READ
    },
    Operation {
        path: "/api/docs/{file}",
        id: "getDocsPageFile",
        title: "Reads a file of that page",
        subject: SUBJECT,
        returns: Returns::Document(&["text/css", "text/javascript"], TEXT),
        ..READ
    },
    Operation {
        path: "/errors/{code}",
        id: "explainError",
        title: "Explains an error",
        about: "The page to which the `type` of an error leads: meaning, cause and cure.",
        subject: SUBJECT,
        returns: Returns::Document(&["text/html"], TEXT),
        ..READ
    },
    Operation {
        path: "/healthz",
        id: "isLive",
        title: "Tells that the gateway lives",
        subject: SUBJECT,
        returns: Returns::Health,
        ..READ
    },
    Operation {
        path: "/readyz",
        id: "isReady",
        title: "Tells whether the gateway reaches a core",
        subject: SUBJECT,
        returns: Returns::Health,
        refusals: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..READ
    },
];
