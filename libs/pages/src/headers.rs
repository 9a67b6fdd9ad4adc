//! The headers of HTML.

use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
};

pub const HTML: &str = "text/html; charset=utf-8";

/// Permits a page its own files and calls to its origin.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Makes a response a page that loads nothing from other origins and tells them nothing.
pub fn add_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
