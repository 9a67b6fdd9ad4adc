//! Answers to clients that ask again: an entity tag for each, and 304 to who has it already
//! (RFC 9110 §13).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
};
use sha2::{Digest, Sha256};

/// Of the digest: enough that two answers have the same tag by no accident.
const TAG_BYTES: usize = 16;

/// Tags the answer of a `GET`, and leaves its body out if the client has it. The tag is of what
/// is sent, so two instants of a resource differ whenever a client could see it. Answers that
/// must not be kept are left alone.
pub(crate) fn tag(asked: &HeaderMap, mut answer: Response<Bytes>) -> Response<Bytes> {
    if answer.status() != StatusCode::OK || must_not_be_kept(answer.headers()) {
        return answer;
    }
    let tag = tag_of(&answer);
    let is_known = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| is_same(known.trim(), &tag));

    let headers = answer.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&format!("W/{tag}")) {
        headers.insert(ETAG, tag);
    }
    // Kept, but never used without asking.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache"));
    if is_known {
        // What the whole answer would have; the compression, which adds it, sees no body here.
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LANGUAGE);
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        *answer.body_mut() = Bytes::new();
    }
    answer
}

pub(crate) fn must_not_be_kept(headers: &HeaderMap) -> bool {
    headers
        .get(CACHE_CONTROL)
        .is_some_and(|value| value.as_bytes() == b"no-store")
}

/// In quotes. Weak, as it is the same whether the body is compressed or not.
fn tag_of(answer: &Response<Bytes>) -> String {
    let mut digest = Sha256::new();
    // The same members under another label are another representation.
    if let Some(media_type) = answer.headers().get(CONTENT_TYPE) {
        digest.update(media_type.as_bytes());
    }
    digest.update([0]);
    digest.update(answer.body());
    let digest = digest.finalize();
    let (tag, _) = digest.split_at(TAG_BYTES);
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(tag))
}

/// The weak comparison (RFC 9110 §8.8.3.2).
fn is_same(known: &str, tag: &str) -> bool {
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(media_type: &'static str) -> Response<Bytes> {
        let mut answer = Response::new(Bytes::from_static(b"{}"));
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        answer
    }

    fn asked(known: &str) -> HeaderMap {
        HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(known).unwrap())])
    }

    #[test]
    fn who_has_the_answer_is_not_sent_it_again() {
        let first = tag(&HeaderMap::new(), answer("application/json"));
        let etag = first.headers()[ETAG].to_str().unwrap();
        let strong = etag.strip_prefix("W/").unwrap();

        for known in [etag, strong, "*", &format!("\"other\", {etag}")] {
            let again = tag(&asked(known), answer("application/json"));

            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(again.body().is_empty());
            assert_eq!(again.headers()[ETAG], etag);
            assert_eq!(again.headers().get(CONTENT_TYPE), None);
        }
        for unknown in ["", "\"other\"", etag.trim_matches('"'), "W/*"] {
            let again = tag(&asked(unknown), answer("application/json"));

            assert_eq!(again.status(), StatusCode::OK, "{unknown}");
            assert_eq!(again.body(), first.body());
            assert_eq!(again.headers(), first.headers());
        }
    }

    #[test]
    fn the_same_body_in_another_form_has_another_tag() {
        let tag = |media_type| tag(&HeaderMap::new(), answer(media_type)).headers()[ETAG].clone();

        assert_ne!(tag("application/json"), tag("application/ld+json"));
    }

    #[test]
    fn what_must_not_be_kept_has_no_tag() {
        let mut secret = answer("application/json");
        secret
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));

        let same = tag(&asked("*"), secret);

        assert_eq!(same.status(), StatusCode::OK);
        assert_eq!(same.headers().get(ETAG), None);
    }
}
