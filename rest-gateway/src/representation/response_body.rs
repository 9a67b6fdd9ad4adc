//! The bytes of a response: hashed for their entity tag (RFC 9110 §13), left out if the client has them, and
//! compressed with gzip in one go: a stream would keep some hundred KB for the encoder until its last byte is
//! read.

use std::{
    io::{self, Write as _},
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG,
        IF_MATCH, IF_NONE_MATCH, VARY,
    },
};
use sha2::{Digest as _, Sha256};
use tokio::{sync::OnceCell, task::yield_now};

use crate::{error::Error, representation::error_codes as codes};

/// Length of the truncated digest: enough to make collisions negligible.
const TAG_BYTES: usize = 16;

/// In bytes. A body that fits into one packet arrives no sooner if compressed.
const MIN_COMPRESSED: usize = 1024;

/// How much is compressed before other tasks have their turn, in bytes.
const PART: usize = 64 * 1024;

/// A body that is the same for every client, in a response's extensions: hashed and compressed once.
#[derive(Clone)]
pub(crate) struct FixedBody(Arc<Forms>);

#[derive(Default)]
struct Forms {
    bytes: Bytes,
    digest: OnceLock<[u8; 32]>,
    gzip: OnceCell<Bytes>,
}

impl FixedBody {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        Self(Arc::new(Forms {
            bytes: bytes.into(),
            ..Forms::default()
        }))
    }

    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.0.bytes.clone());
        response.extensions_mut().insert(self.clone());
        response
    }

    /// The SHA-256 of a response's body.
    fn digest_of(response: &Response<Bytes>) -> [u8; 32] {
        let digest = || Sha256::digest(response.body()).into();
        let fixed = response.extensions().get::<Self>();
        fixed.map_or_else(digest, |Self(forms)| *forms.digest.get_or_init(digest))
    }
}

/// The digest of the name of a body that never changes, in a response's extensions: it stands for that of the bytes.
#[derive(Clone, Copy)]
struct Identity([u8; 32]);

/// Names the body of a response, which never changes. Its bytes need not be there to know the entity tag.
pub(crate) fn identify(response: &mut Response<Bytes>, name: &str) {
    let identity = Identity(Sha256::digest(name).into());
    response.extensions_mut().insert(identity);
}

/// Whether the client has a response, whose body [`tag`] then removes.
pub(crate) fn is_known(request_headers: &HeaderMap, response: &Response<Bytes>) -> bool {
    knows(request_headers, &tag_of(response))
}

/// Adds an `ETag` to the response to a `GET`, and removes the body if the client has it. The tag
/// is a digest of the bytes, or of the name of what never changes, so it changes whenever a client could see a
/// difference. Responses with `no-store` stay unchanged.
pub(crate) fn tag(request_headers: &HeaderMap, response: &mut Response<Bytes>) {
    if response.status() != StatusCode::OK || is_no_store(response.headers()) {
        return;
    }
    let tag = tag_of(response);
    let is_known = knows(request_headers, &tag);
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&format!("W/{tag}")) {
        headers.insert(ETAG, tag);
    }
    // May be cached, but must be revalidated before use.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache"));
    if is_known {
        // As in the 200 response, to which `compress` adds it.
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LANGUAGE);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Bytes::new();
    }
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

/// Compresses a response if its client accepts that. Not what a handler marked as `no-store`: if an attacker can inject text
/// next to a secret, the compressed length reveals whether both share a prefix (the BREACH attack).
pub(crate) async fn compress(request_headers: &HeaderMap, response: &mut Response<Bytes>) {
    let media_type = response.headers().get(CONTENT_TYPE);
    // Compressed already.
    let is_image = media_type.is_some_and(|value| value.as_bytes().starts_with(b"image/"));
    if response.body().len() < MIN_COMPRESSED || is_image || is_no_store(response.headers()) {
        return;
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(VARY, vary);
    if !accepts_gzip(request_headers) {
        return;
    }
    let compressed = match response.extensions().get::<FixedBody>() {
        Some(FixedBody(forms)) => {
            let compressed = forms.gzip.get_or_try_init(|| gzip(&forms.bytes));
            compressed.await.cloned()
        }
        None => gzip(response.body()).await,
    };
    if let Ok(compressed) = compressed {
        *response.body_mut() = compressed;
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(CONTENT_ENCODING, gzip);
    }
}

/// Whether the response must not be stored.
fn is_no_store(headers: &HeaderMap) -> bool {
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
    digest.update(match response.extensions().get::<Identity>() {
        Some(Identity(digest)) => *digest,
        None => FixedBody::digest_of(response),
    });
    let tag = URL_SAFE_NO_PAD.encode(&digest.finalize()[..TAG_BYTES]);
    format!("\"{tag}\"")
}

/// Whether a tag is one of those that the client has.
fn knows(request_headers: &HeaderMap, tag: &str) -> bool {
    let values = request_headers.get_all(IF_NONE_MATCH).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| is_same(known.trim(), tag))
}

/// The weak comparison (RFC 9110 §8.8.3.2).
fn is_same(known: &str, tag: &str) -> bool {
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

/// Whether a request accepts gzip; `*` does not.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    let mut elements = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    elements.any(|element| {
        let (coding, quality) = element.split_once(';').unwrap_or((element, ""));
        let quality = quality.trim().trim_start_matches(['q', 'Q', '=']);
        coding.trim().eq_ignore_ascii_case("gzip") && quality.parse() != Ok(0.0)
    })
}

async fn gzip(body: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for (index, part) in body.chunks(PART).enumerate() {
        if index > 0 {
            yield_now().await;
        }
        encoder.write_all(part)?;
    }
    encoder.finish().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    fn response(media_type: &'static str) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from_static(b"{}"));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    }

    /// The response to a client that sends these headers.
    fn tagged(headers: &HeaderMap, mut response: Response<Bytes>) -> Response<Bytes> {
        tag(headers, &mut response);
        response
    }

    fn if_none_match(known: &str) -> HeaderMap {
        HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(known).unwrap())])
    }

    #[test]
    fn a_client_with_the_current_response_gets_304_without_a_body() {
        let first = tagged(&HeaderMap::new(), response("application/json"));
        let etag = first.headers()[ETAG].to_str().unwrap();
        let strong = etag.strip_prefix("W/").unwrap();

        for known in [etag, strong, "*", &format!("\"other\", {etag}")] {
            let again = tagged(&if_none_match(known), response("application/json"));

            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(again.body().is_empty());
            assert_eq!(again.headers()[ETAG], etag);
            assert_eq!(again.headers().get(CONTENT_TYPE), None);
        }
        for unknown in ["", "\"other\"", etag.trim_matches('"'), "W/*"] {
            let again = tagged(&if_none_match(unknown), response("application/json"));

            assert_eq!(again.status(), StatusCode::OK, "{unknown}");
            assert_eq!(again.body(), first.body());
            assert_eq!(again.headers(), first.headers());
        }
    }

    #[test]
    fn the_same_body_with_another_media_type_has_another_tag() {
        let tag =
            |media_type| tagged(&HeaderMap::new(), response(media_type)).headers()[ETAG].clone();

        assert_ne!(tag("application/json"), tag("application/ld+json"));
    }

    #[test]
    fn a_response_with_no_store_has_no_tag() {
        let mut secret = response("application/json");
        secret
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));

        let same = tagged(&if_none_match("*"), secret);

        assert_eq!(same.status(), StatusCode::OK);
        assert_eq!(same.headers().get(ETAG), None);
    }

    fn accept_encoding(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    #[test]
    fn gzip_is_used_if_it_is_accepted() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip; Q=0.001", true),
            ("*", false),
            ("gzip;q=0, br", false),
            ("gzip;q=0, *", false),
            ("*, GZIP;q=0", false),
            ("gzip;q=0.000", false),
            ("*;q=0, gzip", true),
            ("identity;q=0", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(
                accepts_gzip(&accept_encoding(accepted)),
                expected,
                "{accepted}"
            );
        }
    }

    #[tokio::test]
    async fn a_body_is_compressed_whole_and_that_of_every_client_once() {
        let text: Vec<u8> = (0..50_000).flat_map(u32::to_be_bytes).collect();
        let fixed = FixedBody::new(text.clone());
        let [mut first, mut second] = [fixed.response(), fixed.response()];
        let mut other = Response::new(Bytes::from(text.clone()));
        assert_eq!(FixedBody::digest_of(&first), FixedBody::digest_of(&other));

        for response in [&mut first, &mut second, &mut other] {
            compress(&accept_encoding("gzip"), response).await;
            assert_eq!(response.headers()[CONTENT_ENCODING], "gzip");
            assert_eq!(response.headers()[VARY], "accept-encoding");
            let mut read = Vec::new();
            let mut decoder = GzDecoder::new(&**response.body());
            decoder.read_to_end(&mut read).unwrap();
            assert!(read == text);
        }
        assert_eq!(first.body().as_ptr(), second.body().as_ptr());
    }

    #[tokio::test]
    async fn what_is_small_secret_or_not_accepted_is_not_compressed() {
        for (length, cache_control, accepted, varies) in [
            (MIN_COMPRESSED - 1, "no-cache", "gzip", false),
            (MIN_COMPRESSED, "no-store", "gzip", false),
            (MIN_COMPRESSED, "private, no-store", "gzip", false),
            (MIN_COMPRESSED, "no-cache", "br", true),
        ] {
            let mut response = Response::new(Bytes::from(vec![7; length]));
            let value = HeaderValue::from_static(cache_control);
            response.headers_mut().insert(CACHE_CONTROL, value);

            compress(&accept_encoding(accepted), &mut response).await;

            assert_eq!(response.body().len(), length, "{cache_control}");
            assert_eq!(response.headers().contains_key(VARY), varies);
        }
    }
}
