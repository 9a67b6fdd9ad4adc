//! Compresses responses with gzip, unless they are small or contain secrets.

use http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version, header::ACCEPT_ENCODING};
use tower_http::compression::{
    CompressionLayer,
    predicate::{Predicate, SizeAbove},
};

use crate::representation::etag;

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
