//! The metadata of the authorization server (RFC 8414), for OAuth clients that discover it.

use serde::Serialize;

use crate::{
    api_description::SCOPES,
    error::Error,
    gateway::{self, HandlerResult},
    request::Request,
};

/// RFC 8414 §2.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    token_endpoint: String,
    jwks_uri: String,
    scopes_supported: [&'static str; 3],
    /// Required; empty because there is no authorization endpoint.
    response_types_supported: [&'static str; 0],
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    service_documentation: String,
}

/// `GET /.well-known/oauth-authorization-server`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let issuer = request.gateway.public_url.as_str();
    let metadata = Metadata {
        issuer,
        token_endpoint: format!("{issuer}/oauth2/token"),
        jwks_uri: format!("{issuer}/oauth2/jwks"),
        scopes_supported: SCOPES,
        response_types_supported: [],
        grant_types_supported: ["client_credentials"],
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
        service_documentation: format!("{issuer}/api/docs"),
    };
    let body = serde_json::to_vec(&metadata).map_err(Error::internal)?;
    Ok(gateway::response("application/json", body))
}
