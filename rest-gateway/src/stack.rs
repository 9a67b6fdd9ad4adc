//! What surrounds the pipeline for every request, outermost first: its id, the check of its head, its
//! measurement and log, CORS (Fetch standard), `HEAD`, compression, entity tags, the headers of rate limits and
//! rendered errors.
//!
//! Two limits are elsewhere. `body` limits the size of bodies, and discards a body that its request
//! does not need. `pipeline` limits concurrency after the body is read: a slow client must not occupy
//! the slot of a request that has arrived.

use std::{panic::AssertUnwindSafe, sync::Arc};

use admission::RequestMemory;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, Entry, HOST, LINK,
        TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
    },
    uri::Authority,
};
use http_body_util::Full;
use hyper::body::Incoming;
use uuid::Uuid;

use crate::{
    error::Error,
    observer,
    pipeline::Pipeline,
    rate_limits::LimitStatuses,
    representation::{error_codes as codes, problem, response_body},
    request::REQUEST_ID,
};

const MAX_REQUEST_ID: usize = 128;

/// The maximum number of headers, and of bytes in them. hyper applies both to HTTP/1.
pub(crate) const MAX_HEADERS: usize = 100;
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// What HTTP/2 adds to the size of each header (RFC 9113 §6.5.2).
const HTTP2_OVERHEAD: usize = 32;

/// No browser guesses another media type.
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// For a response that says nothing else. `response_body` says it of those that a client may keep.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-store");

/// Safe for any origin: the API uses no cookies or other browser credentials.
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
/// Request headers that a page of another origin may set.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, accept-language, authorization, content-type, idempotency-key, if-none-match, \
     traceparent, tracestate, x-attach-to, x-request-id",
);
/// Response headers that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "allow, content-language, etag, idempotent-replayed, link, location, ratelimit, \
     ratelimit-policy, retry-after, www-authenticate, x-request-id",
);
/// Two hours, the maximum of Chromium.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Serves a request, or refuses one for which there is no memory.
pub(crate) async fn serve(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
    memory: RequestMemory,
) -> Response<Full<Bytes>> {
    // Before anything that logs.
    if let Entry::Occupied(mut authorization) = request.headers_mut().entry(AUTHORIZATION) {
        for value in authorization.iter_mut() {
            value.set_sensitive(true);
        }
    }
    let request_id = set_request_id(request.headers_mut());
    let rejection = if memory.is_admitted() {
        check_head(&request).err()
    } else {
        Some(Error::overloaded())
    };
    let is_http1 = request.version() < Version::HTTP_2;
    // What follows a rejected head may be part of its body.
    let is_last = rejection.is_some() || pipeline.gateway.draining.is_cancelled();

    let respond = |request| respond(Arc::clone(&pipeline), request, memory, rejection);
    let mut response = observer::observe(&pipeline, request, respond).await;

    let headers = response.headers_mut();
    // A client that knows any URL finds the documentation.
    headers.append(LINK, pipeline.documentation_link.clone());
    headers.insert(&REQUEST_ID, request_id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    // What depends on the token belongs to its client alone, and an error to this moment.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, PRIVATE);
    }
    if is_http1 && is_last {
        // Asks the client to reconnect.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The pipeline's response or rendered error, as the method and the headers of the request want it. Both carry
/// the rate limits that count the request.
async fn respond(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
    memory: RequestMemory,
    rejection: Option<Error>,
) -> Response<Full<Bytes>> {
    let limit_statuses = LimitStatuses::default();
    request.extensions_mut().insert(limit_statuses.clone());
    // The pipeline takes the request.
    let headers = request.headers().clone();
    let method = request.method().clone();
    let path = request.uri().path();
    // The token endpoint is excluded: an API secret must not be in a web page.
    let allows_any_origin = path == "/api" || path.starts_with("/api/");

    let handled = pipeline.handle(request, memory, rejection);
    let mut response = render_failure(handled, &headers, &pipeline.gateway.public_url).await;

    limit_statuses.write(response.headers_mut());
    if [Method::GET, Method::HEAD].contains(&method) {
        response_body::tag(&headers, &mut response);
    }
    response_body::compress(&headers, &mut response).await;
    if method == Method::HEAD {
        response = without_body(response);
    }
    if allows_any_origin {
        let is_preflight =
            method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        permit_any_origin(is_preflight, response.headers_mut());
    }
    response.map(Full::new)
}

/// The response, or that of the error. A panic ends one request, not the other requests of its
/// connection.
async fn render_failure(
    result: impl Future<Output = Result<Response<Bytes>, Error>>,
    request_headers: &HeaderMap,
    public_url: &str,
) -> Response<Bytes> {
    let caught = AssertUnwindSafe(result).catch_unwind().await;
    let result = caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let message = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(panic = message, "handler panicked");
        Err(Error::panic())
    });
    result.unwrap_or_else(|error| {
        problem::log(&error);
        problem::render(&error, request_headers, public_url)
    })
}

/// The response to `HEAD`: that to `GET` without its body.
fn without_body(mut response: Response<Bytes>) -> Response<Bytes> {
    let never_has_body = response.status().is_informational()
        || response.status() == StatusCode::NO_CONTENT
        || response.status() == StatusCode::NOT_MODIFIED;
    if !never_has_body {
        let length = response.body().len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| Bytes::new())
}

/// The id of a request, in its response, in the logs and in its calls to core: the client's if it is a
/// single well-formed one, otherwise a new UUID in order of time, which is added to the headers.
fn set_request_id(headers: &mut HeaderMap) -> HeaderValue {
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
fn is_well_formed(request_id: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&request_id.len())
        && request_id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

/// Fails for a request that hyper has parsed and another program might read differently: checks its
/// `Host` and framing (RFC 9112 §3.2, §6.1; RFC 9113 §8.3.1), and over HTTP/2 the size of its head. Or for one
/// that asks for a tunnel (RFC 9110 §9.3.6): it has no path, and what follows it may be no HTTP.
fn check_head(request: &Request<Incoming>) -> Result<(), Error> {
    if request.method() == Method::CONNECT {
        let message = "the gateway is no proxy: it opens no tunnels";
        return Err(Error::new(&codes::NOT_IMPLEMENTED, message));
    }
    let headers = request.headers();
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + HTTP2_OVERHEAD);
    let is_http2 = request.version() >= Version::HTTP_2;
    if is_http2 && (headers.len() > MAX_HEADERS || sizes.sum::<usize>() > MAX_HEAD) {
        let message =
            format!("more than {MAX_HEADERS} headers, or more than {MAX_HEAD} bytes of them");
        return Err(Error::new(&codes::HEADERS_TOO_LARGE, message));
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|coding| !is_chunked(coding)) || codings.next().is_some() {
        let message = "must be `chunked`, once";
        return Err(Error::invalid_http(
            "Transfer-Encoding",
            "unsupported",
            message,
        ));
    }
    check_host(request)
}

/// Checks the header `Host`, over HTTP/2 beside an `:authority`. It is empty for a target without an
/// authority.
fn check_host(request: &Request<Incoming>) -> Result<(), Error> {
    let invalid = |code, message| Err(Error::invalid_http("Host", code, message));
    let authority = match request.version() {
        Version::HTTP_2 => request.uri().authority(),
        _ => None,
    };
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next(), authority) {
        (Some(_), Some(_), _) => invalid("repeated", "must occur only once"),
        (None, _, None) if request.version() > Version::HTTP_10 => {
            invalid("required", "is required")
        }
        (None, ..) => Ok(()),
        (Some(host), None, Some(authority)) => {
            let authority = authority.as_str().as_bytes();
            if authority.eq_ignore_ascii_case(host.as_bytes()) {
                Ok(())
            } else {
                invalid("conflict", "must be equal to `:authority`")
            }
        }
        (Some(host), None, None) => {
            let is_authority =
                !host.as_bytes().contains(&b'@') && Authority::try_from(host.as_bytes()).is_ok();
            if host.is_empty() || is_authority {
                Ok(())
            } else {
                invalid("malformed", "must be a host, or a host and a port")
            }
        }
    }
}

/// Permits pages of any origin to read a response and, by that to a preflight request, to send the others of
/// its path.
fn permit_any_origin(is_preflight: bool, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    if is_preflight && let Some(allow) = headers.get(ALLOW).cloned() {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_without_its_message() {
        let panicking = async { panic!("a secret") };
        let headers = HeaderMap::from_iter([(REQUEST_ID.clone(), HeaderValue::from_static("7"))]);

        let response = render_failure(panicking, &headers, "https://delivery.example").await;

        assert_eq!(response.status(), 500);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
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
}
