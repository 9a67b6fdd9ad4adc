//! What handlers receive and return: a request with its route's parameter and its body, the state
//! that all requests share, and the result.

use std::{collections::HashSet, mem, net::IpAddr, sync::Arc};

use admission::RequestMemory;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
    request::Parts,
};
use process::health::Readiness;
use proto::{Idempotency, iri};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{
    Status,
    metadata::{Ascii, MetadataValue},
};
use url::form_urlencoded;

use crate::{
    api_description::operations::{Expects, Operation},
    core_pool::{CallOptions, CoreChannel, CorePool},
    error::{Error, Violation},
    idempotency,
    platform::PlatformConfig,
    rate_limits::RateLimits,
    representation::{
        json::Shape,
        language::{self, AcceptLanguage},
        media_type, messages,
    },
    resources::{self_description::Documents, tokens::public_keys::PublicKeys},
    violations::{MAX_VIOLATIONS, ViolationCollector},
};

pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The maximum length of an access token with its scheme, in bytes. Far longer than any token; core's transport accepts 16 KiB of headers in total.
const MAX_AUTHORIZATION: usize = 8 * 1024;

pub(crate) type HandlerResult = Result<Response<Bytes>, Error>;

/// A 200 response with a body of this media type.
pub(crate) fn response(media_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    with_content_type(media_type, Response::new(body.into()))
}

pub(crate) fn with_content_type(
    media_type: &'static str,
    mut response: Response<Bytes>,
) -> Response<Bytes> {
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Converts core's response with `convert`, and marks it if core replayed it.
pub(crate) fn respond<M>(
    response: tonic::Response<M>,
    convert: impl FnOnce(M) -> HandlerResult,
) -> HandlerResult {
    let (metadata, message, _) = response.into_parts();
    let mut response = convert(message)?;
    if metadata.contains_key(proto::IDEMPOTENT_REPLAYED) {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, replayed);
    }
    Ok(response)
}

/// State shared by all handlers.
pub(crate) struct Gateway {
    pub(crate) core: CorePool,
    /// The URL at which clients reach the API, without a trailing slash.
    pub(crate) public_url: String,
    pub(crate) platform_name: String,
    pub(crate) platform: PlatformConfig,
    pub(crate) rate_limits: RateLimits,
    /// Cancelled when the gateway starts to drain.
    pub(crate) draining: CancellationToken,
    pub(crate) documents: Documents,
    pub(crate) public_keys: PublicKeys,
}

impl Readiness for Gateway {
    async fn check(&self) -> Result<(), String> {
        if self.draining.is_cancelled() {
            Err("this gateway is shutting down".to_owned())
        } else if self.core.is_any_up() {
            Ok(())
        } else {
            Err("no core is ready: the cores' /readyz and logs say why".to_owned())
        }
    }
}

/// A request whose route is known and whose body is read.
pub(crate) struct Request {
    pub(crate) gateway: Arc<Gateway>,
    /// The address by which the client is counted.
    pub(crate) client: IpAddr,
    /// What the request takes beside its body, of which a large response must reserve its part before it is there.
    pub(crate) memory: RequestMemory,
    pub(crate) parts: Parts,
    pub(crate) operation: &'static Operation,
    /// The body, until [`Request::read_json`] or the handler of a token request takes it. Its error fails
    /// only requests whose body is read.
    pub(crate) body: Result<Bytes, Error>,
    /// The known members of the body; null if the operation expects none, or it is invalid.
    pub(crate) json: Value,
    pub(crate) idempotency: Option<Idempotency>,
    /// The decoded value of `{…}` in the path; empty if the path has none.
    pub(crate) parameter: String,
    /// What was found invalid so far: first of all, unknown parameters of the query.
    pub(crate) violations: ViolationCollector,
    /// When the response must be ready.
    pub(crate) deadline: Instant,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}{}", self.gateway.public_url, iri::of(name))
    }

    pub(crate) fn query(&self, name: &str) -> Vec<String> {
        let query = self.parts.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes())
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
            .collect()
    }

    /// The values of a query parameter, each once.
    pub(crate) fn distinct_query(&self, name: &str) -> Vec<String> {
        let mut values = self.query(name);
        let mut seen = HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
        values
    }

    /// Calls an idempotent rpc with this request's access token.
    pub(crate) async fn call<M: Clone, R>(
        &self,
        message: M,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<tonic::Response<R>, Status>,
    ) -> Result<R, Error> {
        let response = self.send(message, true, rpc).await?;
        Ok(response.into_inner())
    }

    /// Calls an rpc that is idempotent only with an idempotency key.
    pub(crate) async fn write<M: Clone, R>(
        &self,
        message: M,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<tonic::Response<R>, Status>,
    ) -> Result<tonic::Response<R>, Error> {
        self.send(message, self.idempotency.is_some(), rpc).await
    }

    /// Calls an rpc with this request's access token. Only an idempotent call is retried after its
    /// response was lost. Violations in an error have the client's names.
    pub(crate) async fn send<M: Clone, R>(
        &self,
        message: M,
        is_idempotent: bool,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<tonic::Response<R>, Status>,
    ) -> Result<tonic::Response<R>, Error> {
        let options = CallOptions {
            authorization: authorization(self.headers())?,
            forwarded_for: None,
            is_idempotent,
            ..self.anonymous_call_options()
        };
        let called = self.gateway.core.call(options, message, rpc).await;
        let response = called.map_err(|error| self.violations.in_client_names(error))?;
        if let Some(authorization) = self.headers().get(AUTHORIZATION) {
            // Later requests with this token count against its client's rate limit.
            let token_clients = &self.gateway.rate_limits.token_clients;
            token_clients.record_accepted(authorization.as_bytes());
        }
        Ok(response)
    }

    /// Calls an idempotent rpc that needs no access token.
    pub(crate) async fn call_without_token<M: Clone, R>(
        &self,
        message: M,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<tonic::Response<R>, Status>,
    ) -> Result<R, Error> {
        let options = self.anonymous_call_options();
        let response = self.gateway.core.call(options, message, rpc).await?;
        Ok(response.into_inner())
    }

    /// Options for idempotent calls to core without an access token.
    pub(crate) fn anonymous_call_options(&self) -> CallOptions {
        let request_id: Option<MetadataValue<Ascii>> = self
            .headers()
            .get(&REQUEST_ID)
            .and_then(|id| MetadataValue::try_from(id.as_bytes()).ok());
        CallOptions {
            authorization: None,
            forwarded_for: Some(self.client),
            request_id,
            deadline: self.deadline,
            is_idempotent: true,
        }
    }

    /// The warnings about the body and those of core in the client's language, and their
    /// `Content-Language`; none without warnings.
    pub(crate) fn warnings(
        &self,
        of_core: Vec<proto::Warning>,
    ) -> (Vec<Violation>, Option<String>) {
        let mut warnings = self.violations.warnings(of_core);
        if warnings.is_empty() {
            return (warnings, None);
        }
        let language = AcceptLanguage::of(self.headers()).of_messages();
        let are_translated = messages::translate_all(&mut warnings, language);
        (warnings, Some(language::of_texts(language, are_translated)))
    }

    /// Reads the body and the `Idempotency-Key`, as the operation expects them. Fails if there are
    /// violations, and core has none to add.
    pub(crate) fn read_json(&mut self) -> Result<(), Error> {
        let expects = self.operation.expects;
        let (shape, is_required) = match expects {
            Expects::Resource(class) => (Shape::Class(class), true),
            Expects::Optional(class) => (Shape::Class(class), false),
            Expects::EmptyObject => (Shape::Value, false),
            Expects::Nothing | Expects::Form | Expects::Image => {
                self.read_idempotency_key(&[]);
                return self.violations.check();
            }
        };
        let is_read = is_required || !matches!(&self.body, Ok(body) if body.is_empty());
        if is_read {
            media_type::require_json(&self.parts.method, self.headers())?;
        }
        let body = mem::replace(&mut self.body, Ok(Bytes::new()))?;
        self.read_idempotency_key(&body);
        if is_read {
            self.json = self.violations.parse(&body, shape);
        }
        match expects {
            Expects::EmptyObject => self.violations.check(),
            _ => Ok(()),
        }
    }

    /// Reads the `Idempotency-Key`, if there is one and the operation takes it.
    fn read_idempotency_key(&mut self, body: &[u8]) {
        let is_given = self.headers().contains_key(idempotency::KEY);
        if is_given && self.operation.accepts_idempotency_key() {
            self.idempotency = idempotency::read(&self.parts, body, &mut self.violations);
        }
    }
}

/// The access token of a request, if it has one.
pub(crate) fn authorization(headers: &HeaderMap) -> Result<Option<MetadataValue<Ascii>>, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let text = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let token = text
        .filter(|text| text.len() <= MAX_AUTHORIZATION)
        .and_then(|text| MetadataValue::try_from(text).ok());
    token.map(Some).ok_or_else(Error::malformed_token)
}

/// A violation for each unknown parameter of a query, once: a mistyped filter would match everything,
/// and a mistyped option would not apply. Documents and health checks ignore them, and so does the token
/// endpoint (RFC 6749 §3.2).
pub(crate) fn unknown_parameters(operation: &Operation, uri: &Uri) -> ViolationCollector {
    let query = match uri.query() {
        Some(query) if !operation.returns.is_fixed() => query,
        _ => return ViolationCollector::default(),
    };
    let known = operation.query_parameters();
    let description = match &known[..] {
        [] => "is unknown; there are no parameters".to_owned(),
        known => format!("is unknown; the parameters are {}", known.join(", ")),
    };
    let mut violations = ViolationCollector::default();
    let mut names = Vec::new();
    for (name, _) in form_urlencoded::parse(query.as_bytes()) {
        if names.len() == MAX_VIOLATIONS {
            break;
        }
        if !known.contains(&&*name) && !names.contains(&name) {
            violations.add_verbatim(&name, "UNKNOWN_PARAMETER", &description);
            names.push(name);
        }
    }
    violations
}
