//! Compresses responses with gzip, each in one go: a stream would keep some hundred KB for the encoder
//! until its last byte is read.

use std::{
    io::{self, Write as _},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY},
};
use sha2::{Digest as _, Sha256};
use tokio::{sync::OnceCell, task::yield_now};

use crate::representation::etag;

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
    pub(crate) fn digest_of(response: &Response<Bytes>) -> [u8; 32] {
        let digest = || Sha256::digest(response.body()).into();
        let fixed = response.extensions().get::<Self>();
        fixed.map_or_else(digest, |Self(forms)| *forms.digest.get_or_init(digest))
    }
}

/// Whether a request accepts gzip; `*` does not.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
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

/// Compresses a response if its client accepts that. Not what a handler marked as `no-store`: if an attacker can inject text
/// next to a secret, the compressed length reveals whether both share a prefix (the BREACH attack).
pub(crate) async fn apply(accepts_gzip: bool, response: &mut Response<Bytes>) {
    if response.body().len() < MIN_COMPRESSED || etag::is_no_store(response.headers()) {
        return;
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(VARY, vary);
    if !accepts_gzip {
        return;
    }
    let compressed = match response.extensions().get::<FixedBody>() {
        Some(FixedBody(forms)) => {
            let compressed = forms.gzip.get_or_try_init(|| compress(&forms.bytes));
            compressed.await.cloned()
        }
        None => compress(response.body()).await,
    };
    if let Ok(compressed) = compressed {
        *response.body_mut() = compressed;
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(CONTENT_ENCODING, gzip);
    }
}

async fn compress(body: &[u8]) -> io::Result<Bytes> {
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
    use http::header::CACHE_CONTROL;

    use super::*;

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
            let accepted_value = HeaderValue::from_static(accepted);
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, accepted_value)]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
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
            apply(true, response).await;
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
        for (length, cache_control, accepts, varies) in [
            (MIN_COMPRESSED - 1, "no-cache", true, false),
            (MIN_COMPRESSED, "no-store", true, false),
            (MIN_COMPRESSED, "private, no-store", true, false),
            (MIN_COMPRESSED, "no-cache", false, true),
        ] {
            let mut response = Response::new(Bytes::from(vec![7; length]));
            let value = HeaderValue::from_static(cache_control);
            response.headers_mut().insert(CACHE_CONTROL, value);

            apply(accepts, &mut response).await;

            assert_eq!(response.body().len(), length, "{cache_control}");
            assert_eq!(response.headers().contains_key(VARY), varies);
        }
    }
}
