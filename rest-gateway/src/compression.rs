//! Compressed answers: gzip, of what is worth it and holds no secret.

use http::{
    Extensions, HeaderMap, HeaderValue, Request, StatusCode, Version, header::ACCEPT_ENCODING,
};
use tower::{
    ServiceBuilder,
    layer::util::{Identity, Stack},
    util::MapRequestLayer,
};
use tower_http::compression::{
    CompressionLayer,
    predicate::{And, Predicate, SizeAbove},
};

use crate::conditional;

/// In bytes: what fits into a packet travels no faster when it is smaller.
const SMALL: u64 = 1024;

type NoSecret = fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool;
type Normalise<B> = fn(Request<B>) -> Request<B>;
type Compress = CompressionLayer<And<SizeAbove, NoSecret>>;
type Layers<B> = Stack<Compress, Stack<MapRequestLayer<Normalise<B>>, Identity>>;

/// For the answers to requests with bodies of this type.
pub(crate) fn layer<B>() -> ServiceBuilder<Layers<B>> {
    ServiceBuilder::new()
        .layer(MapRequestLayer::new(accept_gzip_or_nothing as Normalise<B>))
        .layer(
            CompressionLayer::new()
                .compress_when(SizeAbove::new(SMALL).and(holds_no_secret as NoSecret)),
        )
}

/// What must not be kept is not compressed either: where an attacker can have an answer repeat
/// a text beside a secret, its length tells whether they begin alike.
fn holds_no_secret(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !conditional::must_not_be_kept(headers)
}

/// The layer answers 406 to who excludes the identity, after all has been done. RFC 9110
/// §12.5.3 lets the preference be passed over instead.
fn accept_gzip_or_nothing<B>(mut request: Request<B>) -> Request<B> {
    let accepts_gzip = request
        .headers()
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|parameter| {
                let quality = parameter
                    .strip_prefix("q=")
                    .or_else(|| parameter.strip_prefix("Q="));
                quality.and_then(|quality| quality.parse::<f32>().ok()) == Some(0.0)
            });
            (name.eq_ignore_ascii_case("gzip") || name == "*") && !refused
        });
    request.headers_mut().remove(ACCEPT_ENCODING);
    if accepts_gzip {
        request
            .headers_mut()
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_where_it_is_named_and_not_refused() {
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
            let request = Request::get("/").header(ACCEPT_ENCODING, accepted);

            let request = accept_gzip_or_nothing(request.body(()).unwrap());

            let left = request.headers().get(ACCEPT_ENCODING);
            assert_eq!(left.is_some(), expected, "{accepted}");
        }
    }
}
