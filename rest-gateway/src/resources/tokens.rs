//! `/oauth2`: access tokens (RFC 6749, client credentials) and the keys that verify them.
//! Failures of a token request have the form of RFC 6749 §5.2, not that of the API.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, PRAGMA, WWW_AUTHENTICATE},
};
use oauth2::{
    AccessToken, EmptyExtraTokenFields, Scope, StandardErrorResponse, StandardTokenResponse,
    basic::BasicErrorResponseType,
};
use proto::{IssueTokenRequest, ListPublicKeysRequest, tokens_client::TokensClient};
use serde::{Deserialize, Serialize};

use crate::{
    core::Repeat,
    error::Error,
    media_type, problem,
    request::Request,
    resources::credentials::{Credentials, Form},
    routes::{Answer, Gateway},
};

type TokenResponse = StandardTokenResponse<EmptyExtraTokenFields, TokenType>;

/// Spelled as the specification does; `oauth2`'s own type is in lower case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum TokenType {
    Bearer,
}

impl oauth2::TokenType for TokenType {}

#[derive(Debug, Serialize)]
struct ErrorResponse {
    #[serde(flatten)]
    standard: StandardErrorResponse<BasicErrorResponseType>,
    /// The description again, where old clients read it.
    message: String,
}

/// Why there is no token.
pub(super) enum TokenError {
    Refused(BasicErrorResponseType, String),
    /// Nothing that RFC 6749 speaks of.
    Other(Error),
}

impl TokenError {
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::Refused(BasicErrorResponseType::InvalidRequest, message.into())
    }

    pub(super) fn invalid_client(message: impl Into<String>) -> Self {
        Self::Refused(BasicErrorResponseType::InvalidClient, message.into())
    }
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthenticated(refusal) => Self::invalid_client(refusal.message),
            Error::Invalid { code, violations } => {
                let messages: Vec<_> = violations
                    .into_iter()
                    .map(|violation| violation.message)
                    .collect();
                let reason = match code.as_str() {
                    "invalid_scope" => BasicErrorResponseType::InvalidScope,
                    _ => BasicErrorResponseType::InvalidRequest,
                };
                Self::Refused(reason, messages.join("; "))
            }
            other => Self::Other(other),
        }
    }
}

/// `POST /oauth2/token`
pub(crate) async fn issue(gateway: Arc<Gateway>, request: Request) -> Answer {
    match try_issue(&gateway, request).await {
        Ok(response) => json(StatusCode::OK, &response),
        Err(TokenError::Other(error)) => Err(error),
        Err(TokenError::Refused(reason, message)) => refuse(reason, &message),
    }
}

/// A new key is public for a minute before it signs: no copy may be older.
const KEYS_KEPT: &str = "public, max-age=30";

/// `GET /oauth2/jwks`
pub(crate) async fn public_keys(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.anonymous_call();
    let message = ListPublicKeysRequest {};
    let keys = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            TokensClient::new(core).list_public_keys(message).await
        })
        .await?;

    let mut response = Response::new(Bytes::from(keys.jwks));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/jwk-set+json"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEYS_KEPT));
    Ok(response)
}

async fn try_issue(gateway: &Gateway, request: Request) -> Result<TokenResponse, TokenError> {
    let call = request.anonymous_call();
    let headers = request.headers().clone();
    let standings = request.standings();
    if !media_type::may_be_form(&headers) {
        return Err(TokenError::invalid_request(
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    let form = Form::parse(&request.body?)?;
    let message = read(&headers, &form)?;
    let credentials = (message.api_key.as_str(), message.api_secret.as_str());
    gateway
        .rate_limits
        .check_credentials(standings.as_ref(), credentials)?;

    let token = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            TokensClient::new(core).issue_token(message).await
        })
        .await?;

    let mut response = TokenResponse::new(
        AccessToken::new(token.access_token),
        TokenType::Bearer,
        EmptyExtraTokenFields {},
    );
    response.set_expires_in(Some(&Duration::from_secs(token.expires_in.into())));
    response.set_scopes(Some(token.scopes.into_iter().map(Scope::new).collect()));
    Ok(response)
}

fn read(headers: &HeaderMap, form: &Form) -> Result<IssueTokenRequest, TokenError> {
    let basic = Credentials::from_header(headers)?;
    let (body_key, body_secret) = (form.get("client_id"), form.get("client_secret"));
    let twice = basic.as_ref().is_some_and(|basic| {
        // Naming oneself again is not another way of authenticating.
        body_secret.is_some() || body_key.is_some_and(|key| key != basic.api_key)
    });
    if twice {
        return Err(TokenError::invalid_request(
            "the client must authenticate in one way, by HTTP Basic or in the body",
        ));
    }
    match form.get("grant_type") {
        Some("client_credentials") => {}
        Some(_) => {
            return Err(TokenError::Refused(
                BasicErrorResponseType::UnsupportedGrantType,
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
            "the client must authenticate, by HTTP Basic or by client_id and client_secret in the body",
        ));
    };

    let scopes = form.get("scope").unwrap_or_default().split(' ');
    Ok(IssueTokenRequest {
        api_key: credentials.api_key,
        api_secret: credentials.api_secret,
        scopes: scopes
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

fn refuse(reason: BasicErrorResponseType, message: &str) -> Answer {
    let status = match reason {
        BasicErrorResponseType::InvalidClient => StatusCode::UNAUTHORIZED,
        _ => StatusCode::BAD_REQUEST,
    };
    let message = problem::quotable(message);
    let mut response = json(
        status,
        &ErrorResponse {
            standard: StandardErrorResponse::new(reason, Some(message.clone()), None),
            message,
        },
    )?;
    if status == StatusCode::UNAUTHORIZED {
        // RFC 9110 §15.5.2: a 401 names a way of authenticating.
        response.headers_mut().insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"OAuth\""),
        );
    }
    Ok(response)
}

fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).map_err(|error| Error::Internal(error.into()))?;
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(response)
}
