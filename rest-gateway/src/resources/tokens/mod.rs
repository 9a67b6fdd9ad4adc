//! `/oauth2`: access tokens (RFC 6749, client credentials) and the keys that verify them.
//! Errors of token requests have the form of RFC 6749 §5.2 instead of the API's.

mod credentials;
pub(crate) mod public_keys;

use std::mem;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, PRAGMA, WWW_AUTHENTICATE},
};
use proto::{IssueTokenRequest, tokens_client::TokensClient};
use serde::Serialize;

use self::credentials::{Credentials, TokenForm};
use crate::{
    api_description::SCOPES,
    core_pool::rpc,
    error::{Details, Error},
    representation::{media_type, problem},
    request::{self, HandlerResult, Request},
};

/// The body of a successful response (RFC 6749 §5.1).
#[derive(Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    /// The lifetime of the token, in seconds.
    expires_in: u32,
    /// The granted scopes, separated by spaces.
    scope: String,
}

/// The body of an error response.
#[derive(Debug, Serialize)]
struct ErrorResponse<'a> {
    error: Reason,
    error_description: &'a str,
    /// The description again, for older clients.
    message: &'a str,
}

/// Why a token request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    InvalidRequest,
    InvalidClient,
    InvalidScope,
    /// The store of the client is disabled.
    UnauthorizedClient,
    UnsupportedGrantType,
}

/// The failure of a token request.
enum TokenError {
    Rejected(Reason, String),
    /// An error that RFC 6749 does not define.
    Other(Error),
}

/// The metadata of the authorization server (RFC 8414 §2), for OAuth clients that discover it.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    token_endpoint: String,
    jwks_uri: String,
    scopes_supported: [&'static str; SCOPES.len()],
    /// Required; empty because there is no authorization endpoint.
    response_types_supported: [&'static str; 0],
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    service_documentation: String,
}

/// Longest key, secret and list of scopes. Core reads no more than 4 KiB of a call without a token;
/// valid ones are far shorter.
const MAX_PARAMETER_BYTES: usize = 1024;

/// `POST /oauth2/token`
pub(crate) async fn issue(request: Request) -> HandlerResult {
    match try_issue(request).await {
        Ok(response) => json(StatusCode::OK, &response),
        Err(TokenError::Other(error)) => Err(error),
        Err(TokenError::Rejected(reason, message)) => error_response(reason, &message),
    }
}

/// `GET /.well-known/oauth-authorization-server`
pub(crate) fn get_metadata(request: &Request) -> HandlerResult {
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
    Ok(request::response("application/json", body))
}

async fn try_issue(mut request: Request) -> Result<TokenResponse, TokenError> {
    if !media_type::may_be_form(request.headers()) {
        return Err(TokenError::invalid_request(
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    if media_type::is_compressed(request.headers()) {
        return Err(TokenError::invalid_request(media_type::COMPRESSED));
    }
    let body = mem::replace(&mut request.body, Ok(Bytes::new()))?;
    let message = read(request.headers(), &TokenForm::parse(&body)?)?;
    let rate_limits = &request.gateway.rate_limits;
    rate_limits.check_credentials(&request.parts, &message.api_key, &message.api_secret)?;

    let token = request
        .call_without_token(message, rpc!(TokensClient.issue_token))
        .await?;

    Ok(TokenResponse {
        access_token: token.access_token,
        token_type: "Bearer",
        expires_in: token.expires_in,
        scope: token.scopes.join(" "),
    })
}

fn read(headers: &HeaderMap, form: &TokenForm) -> Result<IssueTokenRequest, TokenError> {
    let basic = Credentials::from_header(headers)?;
    let (body_key, body_secret) = (form.get("client_id"), form.get("client_secret"));
    let authenticates_twice = basic.as_ref().is_some_and(|basic| {
        // Repeating the same `client_id` alone is not a second authentication.
        body_secret.is_some() || body_key.is_some_and(|key| key != basic.api_key)
    });
    if authenticates_twice {
        return Err(TokenError::invalid_request(
            "use one way to authenticate: HTTP Basic, or client_id and client_secret in the body",
        ));
    }
    match form.get("grant_type") {
        Some("client_credentials") => {}
        Some(_) => {
            return Err(TokenError::Rejected(
                Reason::UnsupportedGrantType,
                "grant_type must be client_credentials".to_owned(),
            ));
        }
        None => {
            return Err(TokenError::invalid_request(
                "grant_type is missing; it must be client_credentials",
            ));
        }
    }
    let credentials = basic.or_else(|| {
        Some(Credentials {
            api_key: body_key?.to_owned(),
            api_secret: body_secret?.to_owned(),
        })
    });
    let Some(credentials) = credentials else {
        return Err(TokenError::invalid_client(
            "client credentials are missing: send them by HTTP Basic, or as client_id and client_secret in the body",
        ));
    };

    if credentials.api_key.len().max(credentials.api_secret.len()) > MAX_PARAMETER_BYTES {
        return Err(TokenError::invalid_client(format!(
            "the client's key and secret must be at most {MAX_PARAMETER_BYTES} bytes long"
        )));
    }
    let scope = form.get("scope").unwrap_or_default();
    if scope.len() > MAX_PARAMETER_BYTES {
        return Err(TokenError::Rejected(
            Reason::InvalidScope,
            format!("scope must be at most {MAX_PARAMETER_BYTES} bytes long"),
        ));
    }
    let scopes = scope.split(' ');
    Ok(IssueTokenRequest {
        api_key: credentials.api_key,
        api_secret: credentials.api_secret,
        scopes: scopes
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

fn error_response(reason: Reason, message: &str) -> HandlerResult {
    let status = match reason {
        Reason::InvalidClient => StatusCode::UNAUTHORIZED,
        _ => StatusCode::BAD_REQUEST,
    };
    let message = problem::quotable(message);
    let mut response = json(
        status,
        &ErrorResponse {
            error: reason,
            error_description: &message,
            message: &message,
        },
    )?;
    if status == StatusCode::UNAUTHORIZED {
        // RFC 9110 §15.5.2: a 401 has a challenge.
        response.headers_mut().insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"OAuth\""),
        );
    }
    Ok(response)
}

fn json(status: StatusCode, body: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(body).map_err(Error::internal)?;
    let mut response = request::response("application/json", body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(response)
}

impl TokenError {
    fn invalid_request(message: impl Into<String>) -> Self {
        Self::Rejected(Reason::InvalidRequest, message.into())
    }

    fn invalid_client(message: impl Into<String>) -> Self {
        Self::Rejected(Reason::InvalidClient, message.into())
    }
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        match error.details {
            Details::Violations(violations) => {
                let messages: Vec<_> = violations
                    .into_iter()
                    .map(|violation| violation.message)
                    .collect();
                let reason = match &*error.code {
                    "invalid_scope" => Reason::InvalidScope,
                    _ => Reason::InvalidRequest,
                };
                Self::Rejected(reason, messages.join("; "))
            }
            _ if error.kind.status == StatusCode::UNAUTHORIZED => {
                Self::invalid_client(error.message)
            }
            _ if error.kind.status == StatusCode::FORBIDDEN => {
                Self::Rejected(Reason::UnauthorizedClient, error.message)
            }
            _ => Self::Other(error),
        }
    }
}
