//! `/oauth2`: access tokens (RFC 6749, client credentials) and the keys that verify them.
//! Failures of a token request have the form of RFC 6749 §5.2, not that of the API.

use std::{collections::HashMap, sync::Arc, time::Duration};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, WWW_AUTHENTICATE},
};
use oauth2::{
    AccessToken, EmptyExtraTokenFields, Scope, StandardErrorResponse, StandardTokenResponse,
    basic::BasicErrorResponseType,
};
use percent_encoding::percent_decode_str;
use proto::{IssueTokenRequest, ListPublicKeysRequest, tokens_client::TokensClient};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use crate::{
    core::Repeat,
    error::Error,
    media_type, problem,
    request::Request,
    routes::{Answer, Gateway},
};

const MAX_NAME_SHOWN: usize = 100;

const CREDENTIALS_ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

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
enum TokenError {
    Refused(BasicErrorResponseType, String),
    /// Nothing that RFC 6749 speaks of.
    Other(Error),
}

impl TokenError {
    fn invalid_request(message: impl Into<String>) -> Self {
        Self::Refused(BasicErrorResponseType::InvalidRequest, message.into())
    }

    fn invalid_client(message: impl Into<String>) -> Self {
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
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=300"),
    );
    Ok(response)
}

async fn try_issue(gateway: &Gateway, request: Request) -> Result<TokenResponse, TokenError> {
    let call = request.anonymous_call();
    let headers = request.headers().clone();
    if !media_type::may_be_form(&headers) {
        return Err(TokenError::invalid_request(
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    let form = Form::parse(&request.body?)?;
    let message = read(&headers, &form)?;

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

/// The parameters of the body, each there once at most; never those of the URL.
struct Form(HashMap<String, String>);

impl Form {
    fn parse(body: &[u8]) -> Result<Self, TokenError> {
        let mut parameters = HashMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            let repeated = parameters.insert(name.to_string(), value.into_owned());
            if repeated.is_some() {
                let name: String = name.chars().take(MAX_NAME_SHOWN).collect();
                return Err(TokenError::invalid_request(format!(
                    "{name} is there more than once"
                )));
            }
        }
        Ok(Self(parameters))
    }

    /// A parameter without value is as if it were not there (RFC 6749 §3.2).
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

struct Credentials {
    api_key: String,
    api_secret: String,
}

impl Credentials {
    /// Reads HTTP Basic (RFC 7617), key and secret form-encoded (RFC 6749 §2.3.1).
    fn from_header(headers: &HeaderMap) -> Result<Option<Self>, TokenError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Ok(None),
            (Some(value), None) => value,
            (Some(_), Some(_)) => {
                return Err(TokenError::invalid_request(
                    "the Authorization header is there more than once",
                ));
            }
        };
        Self::parse(value).map(Some).ok_or_else(|| {
            TokenError::invalid_client(
                "the Authorization header must be Basic, followed by the Base64 of key:secret",
            )
        })
    }

    fn parse(value: &HeaderValue) -> Option<Self> {
        let (scheme, encoded) = value.to_str().ok()?.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = CREDENTIALS_ENGINE.decode(encoded.trim()).ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (key, secret) = text.split_once(':')?;
        Some(Self {
            api_key: form_decode(key)?,
            api_secret: form_decode(secret)?,
        })
    }
}

fn form_decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
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
