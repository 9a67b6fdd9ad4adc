//! What surrounds the pipeline for every request, outermost first: its id and its client's address, the
//! check of its head, its measurement and log, CORS, `HEAD`, compression, rendered errors and the headers
//! of rate limits.
//!
//! Two limits are elsewhere. `body` limits the size of bodies, and discards a body that its request
//! does not need. `pipeline` limits concurrency after the body is read: a slow client must not occupy
//! the slot of a request that has arrived.

use std::{convert::Infallible, panic::AssertUnwindSafe, sync::Arc};

use admission::Peer;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{
        ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, Entry, LINK,
    },
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::compression::{
    CompressionLayer,
    predicate::{Predicate as _, SizeAbove},
};
use uuid::Uuid;

use crate::{
    body::ResponseBody,
    error::Error,
    observer,
    pipeline::Pipeline,
    rate_limits::LimitStatuses,
    representation::{
        etag,
        media_type::MediaType,
        problem::{self, RequestContext},
    },
    request_head,
};

/// The header that identifies a request in its response, in the logs and in its calls to core.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID: usize = 128;

/// In bytes. A body that fits into one packet arrives no sooner if compressed.
const MIN_COMPRESSED: u64 = 1024;

/// CORS (Fetch standard): request headers that a page of another origin may set.
const CORS_ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, accept-language, authorization, content-type, idempotency-key, if-none-match, \
     traceparent, tracestate, x-request-id",
);
/// Response headers that a page may read.
const CORS_EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "allow, content-language, etag, idempotent-replayed, link, location, ratelimit, \
     ratelimit-policy, retry-after, www-authenticate, x-request-id",
);
/// Two hours, the maximum of Chromium.
const CORS_MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Safe for any origin: the API uses no cookies or other browser credentials.
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

/// Responds to a request.
pub(crate) async fn respond(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Response<ResponseBody> {
    // Before anything that logs.
    if let Entry::Occupied(mut authorization) = request.headers_mut().entry(AUTHORIZATION) {
        for value in authorization.iter_mut() {
            value.set_sensitive(true);
        }
    }
    let request_id = request_id_of(request.headers_mut());
    let peer = Peer(pipeline.gateway.rate_limits.client_address(&request));
    request.extensions_mut().insert(peer);
    let rejection = request_head::check(&request).err();
    if let Some(rejection) = rejection {
        request.extensions_mut().insert(rejection);
    }
    let is_http1 = request.version() < Version::HTTP_2;
    // What follows a rejected head may be part of its body.
    let is_last = rejection.is_some() || pipeline.gateway.draining.is_cancelled();

    let respond = |request| respond_as_requested(Arc::clone(&pipeline), request);
    let mut response = observer::observe(&pipeline, request, respond).await;

    let headers = response.headers_mut();
    // A client that knows any URL finds the documentation.
    headers.append(LINK, pipeline.documentation_link.clone());
    headers.insert(&REQUEST_ID, request_id);
    if is_http1 && is_last {
        // Asks the client to reconnect.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.extensions_mut().insert(peer);
    response
}

/// Responds in the form that the headers and the method of the request decide.
async fn respond_as_requested(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let allows_any_origin = allows_any_origin(request.uri().path());
    accept_gzip_or_nothing(request.headers_mut());

    let compression =
        CompressionLayer::new().compress_when(SizeAbove::new(MIN_COMPRESSED).and(has_no_secret));
    let service = service_fn(move |request| respond_or_fail(Arc::clone(&pipeline), request));
    let Ok(compressed) = compression.layer(service).oneshot(request).await;
    let mut response = compressed.map(|body| body.map_err(Into::into).boxed_unsync());

    if is_head {
        response = without_body(response);
    }
    if allows_any_origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, CORS_EXPOSED_HEADERS);
    }
    response
}

/// Responds with the pipeline's response or error. Both carry the rate limits that count the request.
async fn respond_or_fail(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let id = request.headers().get(&REQUEST_ID);
    let context = RequestContext {
        media_type: MediaType::of_error(request.headers()),
        request_id: id
            .and_then(|id| id.to_str().ok())
            .unwrap_or_default()
            .to_owned(),
    };
    let limit_statuses = LimitStatuses::default();
    request.extensions_mut().insert(limit_statuses.clone());
    let public_url = &pipeline.gateway.public_url;
    let mut response = render_failure(pipeline.respond(request), &context, public_url).await;
    limit_statuses.write(response.headers_mut());
    Ok(response)
}

/// The response, or that of the error. A panic ends one request, not the other requests of its
/// connection.
async fn render_failure(
    result: impl Future<Output = Result<Response<Full<Bytes>>, Error>>,
    context: &RequestContext,
    public_url: &str,
) -> Response<Full<Bytes>> {
    let caught = AssertUnwindSafe(result).catch_unwind().await;
    let result = caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let message = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(panic = message, "handler panicked");
        Err(Error::panic())
    });
    result.unwrap_or_else(|error| {
        problem::log(&error);
        problem::render(&error, context, public_url)
    })
}

/// The response to `HEAD`: that to `GET` without its body. `Content-Length` is set if the length is
/// known.
fn without_body(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let never_has_body = response.status().is_informational()
        || response.status() == StatusCode::NO_CONTENT
        || response.status() == StatusCode::NOT_MODIFIED;
    if let Some(length) = response.body().size_hint().exact()
        && !never_has_body
    {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| ResponseBody::default())
}

/// The id of a request: the client's if it is a single well-formed one, otherwise a new UUID in order
/// of time, which is added to the headers.
fn request_id_of(headers: &mut HeaderMap) -> HeaderValue {
    let mut values = headers.get_all(&REQUEST_ID).iter();
    let id = match (values.next(), values.next()) {
        (Some(id), None) if is_well_formed(id.as_bytes()) => id.clone(),
        _ => HeaderValue::try_from(Uuid::now_v7().to_string()).expect("digits and hyphens"),
    };
    headers.insert(&REQUEST_ID, id.clone());
    id
}

/// Accepts the characters of UUIDs, ULIDs, trace ids and Base64; rejects any that could break a
/// log line or a header.
fn is_well_formed(value: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&value.len())
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

/// Excludes responses with `no-store`: if an attacker can inject text next to a secret, the
/// compressed length reveals whether both share a prefix (the BREACH attack).
fn has_no_secret(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !etag::is_no_store(headers)
}

/// Reduces `Accept-Encoding` to gzip or nothing. The compression layer would respond 406 to a
/// request that excludes `identity`, after the handler has run; RFC 9110 §12.5.3 permits ignoring
/// the preference instead.
fn accept_gzip_or_nothing(headers: &mut HeaderMap) {
    // `*` stands for the codings that are not named.
    let accepts_gzip = accepts(headers, "gzip").or_else(|| accepts(headers, "*"));
    headers.remove(ACCEPT_ENCODING);
    if accepts_gzip == Some(true) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

/// Whether `Accept-Encoding` accepts a coding; none if it does not name the coding.
fn accepts(headers: &HeaderMap, coding: &str) -> Option<bool> {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|element| {
            let mut parts = element.split(';').map(str::trim);
            let is_named = parts.next()?.eq_ignore_ascii_case(coding);
            let is_rejected = parts.any(|parameter| {
                let quality = parameter
                    .strip_prefix("q=")
                    .or_else(|| parameter.strip_prefix("Q="));
                quality.and_then(|quality| quality.parse::<f32>().ok()) == Some(0.0)
            });
            is_named.then_some(!is_rejected)
        })
        .max()
}

/// Whether pages of any origin may use a path with an access token. The token endpoint is excluded: an API
/// secret must not be in a web page.
fn allows_any_origin(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Adds the headers of a CORS preflight response, for a path with these methods.
pub(crate) fn add_preflight_headers(path: &str, allow: &HeaderValue, headers: &mut HeaderMap) {
    if allows_any_origin(path) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, CORS_ALLOWED_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, CORS_MAX_AGE);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_without_its_message() {
        let panicking = async { panic!("a secret") };
        let context = RequestContext {
            media_type: MediaType::JsonLd,
            request_id: "7".to_owned(),
        };

        let response = render_failure(panicking, &context, "https://delivery.example").await;

        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body,
            json!({
                "@context": "/api/contexts/Error",
                "@type": "hydra:Error",
                "hydra:title": "An error occurred",
                "hydra:description": "something went wrong on our side",
                "type": "https://delivery.example/errors/internal",
                "title": "Internal error",
                "status": 500,
                "detail": "something went wrong on our side",
                "code": "internal",
                "retryable": false,
                "requestId": "7",
            })
        );
    }

    #[test]
    fn a_request_id_has_at_most_128_safe_characters() {
        for right in [
            "a",
            "01932e5c-9f4a-7000-8000-00000000000a",
            "root=1-67:x/y+z=@~.",
        ] {
            assert!(is_well_formed(right.as_bytes()), "{right}");
        }
        for wrong in ["", "a b", "a\"b", "a,b", "é", &"a".repeat(129)] {
            assert!(!is_well_formed(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn gzip_is_used_if_it_is_accepted() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, br", false),
            ("gzip;q=0, *", false),
            ("*, GZIP;q=0", false),
            ("*;q=0, gzip", true),
            ("identity;q=0", false),
            ("*;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let accepted_value = HeaderValue::from_static(accepted);
            let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, accepted_value)]);

            accept_gzip_or_nothing(&mut headers);

            let left = headers.get(ACCEPT_ENCODING);
            assert_eq!(left.is_some(), expected, "{accepted}");
        }
    }
}
