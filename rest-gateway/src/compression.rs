//! Compresses responses with gzip, unless they are small or contain secrets.

use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version, header::ACCEPT_ENCODING};
use tower_http::compression::{
    CompressionLayer,
    predicate::{Predicate, SizeAbove},
};

use crate::etag;

/// In bytes. A body that fits into one packet arrives no sooner if compressed.
const MIN_SIZE: u64 = 1024;

/// Compresses responses for requests that [`accept_gzip_or_nothing`] has seen.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new().compress_when(SizeAbove::new(MIN_SIZE).and(has_no_secret))
}

/// Excludes responses with `no-store`: if an attacker can inject text next to a secret, the
/// compressed length reveals whether both share a prefix (the BREACH attack).
fn has_no_secret(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !etag::is_no_store(headers)
}

/// Reduces `Accept-Encoding` to gzip or nothing. The compression layer would respond 406 to a
/// request that excludes `identity`, after the handler has run; RFC 9110 §12.5.3 permits ignoring
/// the preference instead.
pub(crate) fn accept_gzip_or_nothing(headers: &mut HeaderMap) {
    let accepts_gzip = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let is_rejected = parts.any(|parameter| {
                let quality = parameter
                    .strip_prefix("q=")
                    .or_else(|| parameter.strip_prefix("Q="));
                quality.and_then(|quality| quality.parse::<f32>().ok()) == Some(0.0)
            });
            (name.eq_ignore_ascii_case("gzip") || name == "*") && !is_rejected
        });
    headers.remove(ACCEPT_ENCODING);
    if accepts_gzip {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_if_it_is_accepted() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, br", false),
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
