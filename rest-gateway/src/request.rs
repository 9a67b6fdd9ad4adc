//! A request with its route's parameter and its body, as handlers receive it.

use std::{collections::HashSet, mem, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION, request::Parts};
use proto::iri;
use tokio::time::Instant;
use tonic::{
    Response, Status,
    metadata::{Ascii, MetadataValue},
};
use url::form_urlencoded;

use crate::{
    api_description::Shape,
    body_reader::ViolationCollector,
    core_pool::{CallOptions, CoreChannel},
    error::Error,
    gateway::Gateway,
    media_type,
    rate_limits::LimitStatuses,
    request_id::REQUEST_ID,
};

/// In bytes. Far longer than any token; core's transport accepts 16 KiB of headers in total.
const MAX_AUTHORIZATION: usize = 8 * 1024;

pub(crate) struct Request {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) parts: Parts,
    /// Handlers that do not read the body ignore an error.
    pub(crate) body: Result<Bytes, Error>,
    /// The decoded value of `{…}` in the path; empty if the path has none.
    pub(crate) parameter: String,
    /// Of the query: its unknown parameters.
    pub(crate) query_violations: ViolationCollector,
    /// When the response must be ready.
    pub(crate) deadline: Instant,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The URL of a named resource.
    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}{}", self.gateway.public_url, iri::of(name))
    }

    /// The rate limits that count this request.
    pub(crate) fn limit_statuses(&self) -> Option<LimitStatuses> {
        self.parts.extensions.get().cloned()
    }

    /// The values of a query parameter.
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

    /// A collector with the violations of the query.
    pub(crate) fn violations(&self) -> ViolationCollector {
        self.query_violations.clone()
    }

    /// Calls an idempotent rpc with this request's access token.
    pub(crate) async fn call<M: Clone, R>(
        &self,
        message: M,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<R, Error> {
        let response = self.write(message, true, rpc).await?;
        Ok(response.into_inner())
    }

    /// Calls an rpc with this request's access token. Only an idempotent call is retried after its
    /// response was lost.
    pub(crate) async fn write<M: Clone, R>(
        &self,
        message: M,
        is_idempotent: bool,
        rpc: impl AsyncFn(CoreChannel, tonic::Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<Response<R>, Error> {
        let options = CallOptions {
            authorization: authorization(self.headers())?,
            token_clients: Some(self.gateway.rate_limits.token_clients.clone()),
            is_idempotent,
            ..self.anonymous_call_options()
        };
        self.gateway.core.call(options, message, rpc).await
    }

    /// Options for idempotent calls to core without an access token.
    pub(crate) fn anonymous_call_options(&self) -> CallOptions {
        let request_id: Option<MetadataValue<Ascii>> = self
            .headers()
            .get(&REQUEST_ID)
            .and_then(|id| MetadataValue::try_from(id.as_bytes()).ok());
        CallOptions {
            authorization: None,
            request_id,
            deadline: self.deadline,
            token_clients: None,
            is_idempotent: true,
        }
    }

    /// The body, which must be declared as JSON. Can be read once.
    pub(crate) fn json(&mut self) -> Result<Bytes, Error> {
        media_type::require_json(self.headers())?;
        mem::replace(&mut self.body, Ok(Bytes::new()))
    }

    /// Like [`Request::json`], but without a declaration if the body is empty.
    pub(crate) fn optional_json(&mut self) -> Result<Bytes, Error> {
        if matches!(&self.body, Ok(body) if body.is_empty()) {
            return Ok(Bytes::new());
        }
        self.json()
    }

    /// Checks the query, and the body of an operation that needs none: empty, or a JSON object, whose
    /// members are ignored.
    pub(crate) fn check_unused_body(&mut self) -> Result<(), Error> {
        let body = self.optional_json()?;
        let mut violations = self.violations();
        violations.parse_optional(&body, Shape::Value);
        violations.check()
    }
}

/// The access token of a request, if it has one.
pub(crate) fn authorization(headers: &HeaderMap) -> Result<Option<MetadataValue<Ascii>>, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => to_metadata(value)
            .map(Some)
            .ok_or_else(Error::malformed_token),
        (Some(_), Some(_)) => Err(Error::malformed_token()),
    }
}

fn to_metadata(value: &HeaderValue) -> Option<MetadataValue<Ascii>> {
    let text = value.to_str().ok()?;
    if text.len() > MAX_AUTHORIZATION {
        return None;
    }
    MetadataValue::try_from(text).ok()
}
