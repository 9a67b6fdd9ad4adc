//! A request with its route's parameter and its body, as handlers receive it.

use std::collections::HashSet;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION, request::Parts};
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use url::form_urlencoded;

use crate::{
    api_description::Shape,
    body_reader::ViolationCollector,
    core_pool::CallOptions,
    error::Error,
    media_type,
    query::UnknownParameters,
    rate_limits::{LimitStatuses, TokenOwners},
    request_id::REQUEST_ID,
};

/// In bytes. Far longer than any token; core's transport accepts 16 KiB of headers in total.
const MAX_AUTHORIZATION: usize = 8 * 1024;

pub(crate) struct Request {
    pub(crate) parts: Parts,
    /// Handlers that do not read the body ignore an error.
    pub(crate) body: Result<Bytes, Error>,
    /// The decoded value of `{…}` in the path; empty if the path has none.
    pub(crate) parameter: String,
    pub(crate) unknown_parameters: UnknownParameters,
    /// When the response must be ready.
    pub(crate) deadline: Instant,
    /// Caches the client of this request's token once core has accepted the token.
    pub(crate) token_owners: TokenOwners,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
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

    /// A collector with the violations of the query: its unknown parameters.
    pub(crate) fn violations(&self) -> ViolationCollector {
        let mut violations = ViolationCollector::default();
        self.unknown_parameters.add_to(&mut violations);
        violations
    }

    /// Fails if the query has unknown parameters. For operations that write and have neither
    /// parameters nor a body.
    pub(crate) fn check_query(&self) -> Result<(), Error> {
        self.unknown_parameters.to_error().map_or(Ok(()), Err)
    }

    /// Options for calls to core with this request's access token.
    pub(crate) fn call_options(&self) -> Result<CallOptions, Error> {
        let mut values = self.headers().get_all(AUTHORIZATION).iter();
        let authorization = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(to_metadata(value).ok_or_else(Error::malformed_token)?),
            (Some(_), Some(_)) => return Err(Error::malformed_token()),
        };
        let token = authorization.as_ref().map(|authorization| {
            let authorization = authorization.as_encoded_bytes();
            self.token_owners.unverified(authorization)
        });
        Ok(CallOptions {
            authorization,
            token,
            ..self.anonymous_call_options()
        })
    }

    /// Options for calls to core without an access token.
    pub(crate) fn anonymous_call_options(&self) -> CallOptions {
        let request_id: Option<MetadataValue<Ascii>> = self
            .headers()
            .get(&REQUEST_ID)
            .and_then(|id| MetadataValue::try_from(id.as_bytes()).ok());
        CallOptions {
            authorization: None,
            request_id,
            deadline: self.deadline,
            token: None,
        }
    }

    /// The body, which must be declared as JSON; none if it is empty.
    pub(crate) fn optional_json(self) -> Result<Option<Bytes>, Error> {
        if matches!(&self.body, Ok(body) if body.is_empty()) {
            return Ok(None);
        }
        self.json().map(Some)
    }

    /// Checks the body of an operation that needs none: empty, or a JSON object, whose members are
    /// ignored.
    pub(crate) fn check_unused_body(self) -> Result<(), Error> {
        let mut violations = self.violations();
        self.read_unused_body(&mut violations)?;
        violations.into_error().map_or(Ok(()), Err)
    }

    /// Like [`Request::check_unused_body`], but collects the violations and returns the bytes.
    pub(crate) fn read_unused_body(
        self,
        violations: &mut ViolationCollector,
    ) -> Result<Bytes, Error> {
        let body = self.optional_json()?;
        if let Some(body) = &body {
            violations.parse(body, Shape::Value);
        }
        Ok(body.unwrap_or_default())
    }

    /// The body, which must be declared as JSON.
    pub(crate) fn json(self) -> Result<Bytes, Error> {
        media_type::require_json(self.headers())?;
        self.body
    }
}

fn to_metadata(value: &HeaderValue) -> Option<MetadataValue<Ascii>> {
    let text = value.to_str().ok()?;
    if text.len() > MAX_AUTHORIZATION {
        return None;
    }
    MetadataValue::try_from(text).ok()
}
