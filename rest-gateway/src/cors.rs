//! Cross-origin resource sharing (Fetch standard): which pages may use the API with an access token.

use http::{
    HeaderMap, HeaderValue,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    },
};

/// Request headers that a page of another origin may set.
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

/// Whether pages of any origin may use a path with an access token. The token endpoint is excluded: an API
/// secret must not be in a web page.
pub(crate) fn allows_any_origin(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Permits pages of any origin to read a response.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
}

/// Adds the headers of a CORS preflight response, for a path with these methods.
pub(crate) fn add_preflight_headers(path: &str, allow: &HeaderValue, headers: &mut HeaderMap) {
    if allows_any_origin(path) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
}
