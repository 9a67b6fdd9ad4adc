//! Access tokens.

use super::{Expects, Needs, Operation, READ, Returns};
use crate::error_codes as codes;

pub(super) static ALL: &[Operation] = &[
    Operation {
        method: "POST",
        path: "/oauth2/token",
        id: "issueToken",
        title: "Issues an access token",
        about: "The OAuth 2.0 client credentials flow (RFC 6749 §4.4). The key and the secret come \
                by HTTP Basic, or as `client_id` and `client_secret` in the form.",
        subject: "Access tokens",
        needs: Needs::Credentials,
        expects: Expects::Form,
        returns: Returns::Document(
            &["application/json"],
            r#"{
                "type": "object",
                "properties": {
                    "access_token": {"type": "string", "description": "A JSON Web Token: send it as `Authorization: Bearer <access_token>`."},
                    "token_type": {"type": "string", "const": "Bearer"},
                    "expires_in": {"type": "integer", "minimum": 1, "description": "Seconds."},
                    "scope": {"type": "string", "description": "What it permits: scopes, separated by spaces."}
                },
                "required": ["access_token", "token_type", "expires_in", "scope"]
            }"#,
        ),
        ..READ
    },
    Operation {
        path: "/oauth2/jwks",
        id: "listPublicKeys",
        title: "Lists the keys that verify access tokens",
        about: "A JSON Web Key Set (RFC 7517). Only programs that judge tokens themselves need it.",
        subject: "Access tokens",
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
        refusals: &[
            &codes::INTERNAL,
            &codes::UNAVAILABLE,
            &codes::DEADLINE_EXCEEDED,
        ],
        ..READ
    },
];
