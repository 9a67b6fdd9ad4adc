//! A request that has found its resource.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION, request::Parts};
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use url::form_urlencoded;

use crate::{
    core::Call,
    error::Error,
    media_type,
    rate_limits::{KnownClients, Standings},
    report::Report,
    stack::REQUEST_ID,
};

/// Far above any token's; core's transport takes 16 KiB of headers in all.
const MAX_AUTHORIZATION: usize = 8 * 1024;

pub(crate) struct Request {
    pub(crate) parts: Parts,
    /// Why there is no body matters only to those who want one.
    pub(crate) body: Result<Bytes, Error>,
    /// What stands in the path for `{…}`, decoded; empty if the path has no such place.
    pub(crate) parameter: String,
    /// When its answer is no longer waited for.
    pub(crate) deadline: Instant,
    /// To know its sender by, the next time.
    pub(crate) known_clients: KnownClients,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// How its sender stands with the limits.
    pub(crate) fn standings(&self) -> Option<Standings> {
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

    /// What every call to core on behalf of this request's sender carries.
    pub(crate) fn call(&self) -> Result<Call, Error> {
        let mut values = self.headers().get_all(AUTHORIZATION).iter();
        let authorization = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(to_metadata(value).ok_or_else(Error::unreadable_token)?),
            (Some(_), Some(_)) => return Err(Error::unreadable_token()),
        };
        let token = authorization.as_ref().map(|authorization| {
            let authorization = authorization.as_encoded_bytes();
            self.known_clients.token(authorization)
        });
        Ok(Call {
            authorization,
            token,
            ..self.anonymous_call()
        })
    }

    /// What a call to core carries that needs no access token.
    pub(crate) fn anonymous_call(&self) -> Call {
        let request_id: Option<MetadataValue<Ascii>> = self
            .headers()
            .get(&REQUEST_ID)
            .and_then(|id| MetadataValue::try_from(id.as_bytes()).ok());
        Call {
            authorization: None,
            request_id,
            deadline: self.deadline,
            token: None,
        }
    }

    /// The body, if there is one; then it must say that it is JSON.
    pub(crate) fn optional_json(self) -> Result<Option<Bytes>, Error> {
        if matches!(&self.body, Ok(body) if body.is_empty()) {
            return Ok(None);
        }
        self.json().map(Some)
    }

    /// The body is `{}`, or none at all; members are unknown, so ignored.
    pub(crate) fn check_empty(self) -> Result<(), Error> {
        let mut report = Report::default();
        self.empty_json(&mut report)?;
        report.into_error().map_or(Ok(()), Err)
    }

    /// The body, reported unless it is as in [`Request::check_empty`].
    pub(crate) fn empty_json(self, report: &mut Report) -> Result<Bytes, Error> {
        let body = self.optional_json()?;
        if let Some(body) = &body {
            report.parse(body);
        }
        Ok(body.unwrap_or_default())
    }

    /// The body, which must say that it is JSON.
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
