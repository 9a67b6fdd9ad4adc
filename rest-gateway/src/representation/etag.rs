//! Entity tags and conditional requests: 304 if the client has the current response (RFC 9110 §13).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, VARY},
};
use sha2::{Digest as _, Sha256};

use crate::{
    error::Error,
    representation::{compression::FixedBody, error_codes as codes},
};

/// Length of the truncated digest: enough to make collisions negligible.
const TAG_BYTES: usize = 16;

/// Adds an `ETag` to the response to a `GET`, and removes the body if the client has it. The tag
/// is a digest of the bytes, so it changes whenever a client could see a difference. Responses
/// with `no-store` are returned unchanged.
pub(crate) fn apply(request_headers: &HeaderMap, mut response: Response<Bytes>) -> Response<Bytes> {
    if response.status() != StatusCode::OK || is_no_store(response.headers()) {
        return response;
    }
    let tag = tag_of(&response);
    let is_known = request_headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| is_same(known.trim(), &tag));

    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&format!("W/{tag}")) {
        headers.insert(ETAG, tag);
    }
    // May be cached, but must be revalidated before use.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache"));
    if is_known {
        // As in the 200 response, to which `compression` adds it.
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LANGUAGE);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Bytes::new();
    }
    response
}

/// Fails unless `If-Match` is absent or `*`. It compares strongly (RFC 9110 §13.1.1), and every
/// entity tag of the API is weak, so no other value can be met.
pub(crate) fn check_if_match(headers: &HeaderMap) -> Result<(), Error> {
    let mut values = headers.get_all(IF_MATCH).iter().peekable();
    if values.peek().is_none() || values.any(|value| value.as_bytes().trim_ascii() == b"*") {
        Ok(())
    } else {
        Err(Error::new(
            &codes::PRECONDITION_FAILED,
            "an If-Match other than `*` cannot be met: all entity tags are weak",
        ))
    }
}

/// Whether the response must not be stored.
pub(crate) fn is_no_store(headers: &HeaderMap) -> bool {
    let value = headers.get(CACHE_CONTROL);
    value.is_some_and(|value| value.as_bytes().ends_with(b"no-store"))
}

/// In quotes. Used as a weak tag: it is the same for the compressed body.
fn tag_of(response: &Response<Bytes>) -> String {
    let mut digest = Sha256::new();
    // The same body with another media type is another representation.
    if let Some(media_type) = response.headers().get(CONTENT_TYPE) {
        digest.update(media_type.as_bytes());
    }
    digest.update([0]);
    digest.update(FixedBody::digest_of(response));
    let tag = URL_SAFE_NO_PAD.encode(&digest.finalize()[..TAG_BYTES]);
    format!("\"{tag}\"")
}

/// The weak comparison (RFC 9110 §8.8.3.2).
fn is_same(known: &str, tag: &str) -> bool {
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(media_type: &'static str) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from_static(b"{}"));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    }

    fn if_none_match(known: &str) -> HeaderMap {
        HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(known).unwrap())])
    }

    #[test]
    fn a_client_with_the_current_response_gets_304_without_a_body() {
        let first = apply(&HeaderMap::new(), response("application/json"));
        let etag = first.headers()[ETAG].to_str().unwrap();
        let strong = etag.strip_prefix("W/").unwrap();

        for known in [etag, strong, "*", &format!("\"other\", {etag}")] {
            let again = apply(&if_none_match(known), response("application/json"));

            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(again.body().is_empty());
            assert_eq!(again.headers()[ETAG], etag);
            assert_eq!(again.headers().get(CONTENT_TYPE), None);
        }
        for unknown in ["", "\"other\"", etag.trim_matches('"'), "W/*"] {
            let again = apply(&if_none_match(unknown), response("application/json"));

            assert_eq!(again.status(), StatusCode::OK, "{unknown}");
            assert_eq!(again.body(), first.body());
            assert_eq!(again.headers(), first.headers());
        }
    }

    #[test]
    fn the_same_body_with_another_media_type_has_another_tag() {
        let tag =
            |media_type| apply(&HeaderMap::new(), response(media_type)).headers()[ETAG].clone();

        assert_ne!(tag("application/json"), tag("application/ld+json"));
    }

    #[test]
    fn a_response_with_no_store_has_no_tag() {
        let mut secret = response("application/json");
        secret
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));

        let same = apply(&if_none_match("*"), secret);

        assert_eq!(same.status(), StatusCode::OK);
        assert_eq!(same.headers().get(ETAG), None);
    }
}
