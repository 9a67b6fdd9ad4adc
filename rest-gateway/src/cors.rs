//! CORS (Fetch standard): pages of any origin may use everything under `/api` with an access
//! token. The token endpoint is excluded: an API secret must not be in a web page.

use http::{
    HeaderMap, HeaderValue,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    },
};

/// Request headers that a page may set.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, accept-language, authorization, content-type, idempotency-key, if-none-match, \
     traceparent, tracestate, x-request-id",
);
/// Response headers that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "allow, content-language, etag, idempotent-replayed, link, location, ratelimit, \
     ratelimit-policy, retry-after, www-authenticate, x-request-id",
);
/// Two hours, the maximum of Chromium.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Safe for any origin: the API uses no cookies or other browser credentials.
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

/// Whether pages of any origin may read a response for this path.
pub(crate) fn allows_any_origin(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether an `OPTIONS` request is a CORS preflight.
pub(crate) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Adds the headers of a preflight response, for a path with these methods.
pub(crate) fn add_preflight_headers(path: &str, allow: &HeaderValue, headers: &mut HeaderMap) {
    if allows_any_origin(path) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
}

/// Lets pages of any origin read a response.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
}
