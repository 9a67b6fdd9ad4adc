//! Media types of requests and responses: `Content-Type` and `Accept` (RFC 9110 §12.5.1).

use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};

use crate::{error::Error, representation::error_codes as codes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/ld+json`
    JsonLd,
    /// `application/json`
    Json,
    /// `application/problem+json`
    Problem,
}

impl MediaType {
    pub(crate) fn of_resource(headers: &HeaderMap) -> Result<Self, Error> {
        best(&ranges(headers), &[Self::JsonLd, Self::Json]).ok_or_else(|| {
            Error::new(
                &codes::NOT_ACCEPTABLE,
                "the response can only be application/ld+json or application/json",
            )
        })
    }

    /// Negotiates the media type of an error. Falls back to JSON-LD: an error is always sent.
    pub(crate) fn of_error(headers: &HeaderMap) -> Self {
        best(&ranges(headers), &[Self::JsonLd, Self::Json, Self::Problem]).unwrap_or(Self::JsonLd)
    }

    pub(crate) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::JsonLd => "application/ld+json; charset=utf-8",
            Self::Json => "application/json",
            Self::Problem => "application/problem+json",
        })
    }

    fn subtype(self) -> &'static str {
        match self {
            Self::JsonLd => "ld+json",
            Self::Json => "json",
            Self::Problem => "problem+json",
        }
    }
}

/// Requires that `Content-Type` declares JSON in UTF-8; for `PATCH`, also as a merge patch (RFC 7396).
pub(crate) fn require_json(method: &Method, headers: &HeaderMap) -> Result<(), Error> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        _ => "",
    };
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let is_one_of =
        |text: &str, known: &[&str]| known.iter().any(|known| text.eq_ignore_ascii_case(known));
    let mut charsets = parts
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"'));
    let is_patch = method == Method::PATCH && is_one_of(essence, &[MERGE_PATCH]);
    let message = if !is_patch && !is_one_of(essence, &["application/ld+json", "application/json"])
    {
        "the body must be application/ld+json or application/json"
    } else if !charsets.all(|charset| is_one_of(charset, &["utf-8", "utf8", "us-ascii"])) {
        "the body must be in UTF-8"
    } else if is_compressed(headers) {
        COMPRESSED
    } else {
        return Ok(());
    };
    Err(Error::new(&codes::UNSUPPORTED_MEDIA_TYPE, message))
}

pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The message for a compressed body.
pub(crate) const COMPRESSED: &str = "the body must not be compressed";

pub(crate) fn is_compressed(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    !encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether `Content-Type` declares a form, or is absent.
pub(crate) fn may_be_form(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().all(|value| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next();
        essence.is_some_and(|essence| {
            essence
                .trim_ascii()
                .eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        })
    })
}

/// Whether `Accept` names HTML, as that of browsers does.
pub(crate) fn names_html(headers: &HeaderMap) -> bool {
    let is_html = |range: &MediaRange<'_>| (range.main, range.subtype) == ("text", "html");
    ranges(headers).iter().any(is_html)
}

struct MediaRange<'h> {
    main: &'h str,
    subtype: &'h str,
    /// The weight of the range, from 0 to 1.
    quality: f32,
}

impl MediaRange<'_> {
    /// How specifically the range matches a type; none if it does not match.
    fn specificity(&self, media_type: MediaType) -> Option<u8> {
        if self.main == "*" {
            Some(0)
        } else if !self.main.eq_ignore_ascii_case("application") {
            None
        } else if self.subtype == "*" {
            Some(1)
        } else if self.subtype.eq_ignore_ascii_case(media_type.subtype()) {
            Some(2)
        } else {
            None
        }
    }
}

/// The well-formed ranges; malformed ones are ignored. An empty list accepts every type.
fn ranges(headers: &HeaderMap) -> Vec<MediaRange<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(parse_range)
        .collect()
}

/// Parses a range (RFC 9110 §12.5.1); none if it or its quality is malformed.
fn parse_range(text: &str) -> Option<MediaRange<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let (main, subtype) = match parts.next()? {
        // Sent by some old clients for `*/*`.
        "*" => ("*", "*"),
        essence => essence.split_once('/')?,
    };
    if !is_token(main) || !is_token(subtype) || (main == "*" && subtype != "*") {
        return None;
    }
    let quality = parts
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .map_or(Ok(1.0), |(_, value)| value.trim().parse())
        .ok()
        .filter(|quality| (0.0..=1.0).contains(quality))?;
    Some(MediaRange {
        main,
        subtype,
        quality,
    })
}

/// Whether a text is a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// The best accepted type: by quality, then by specificity, then in the order offered.
fn best(ranges: &[MediaRange<'_>], offered: &[MediaType]) -> Option<MediaType> {
    if ranges.is_empty() {
        return offered.first().copied();
    }
    let mut best = None;
    for &media_type in offered {
        let most_specific = ranges
            .iter()
            .filter_map(|range| Some((range.specificity(media_type)?, range.quality)))
            .max_by_key(|(specificity, _)| *specificity);
        let Some((specificity, quality)) = most_specific.filter(|(_, quality)| *quality > 0.0)
        else {
            continue;
        };
        let rank = (quality, specificity);
        if best.is_none_or(|(best_rank, _)| rank > best_rank) {
            best = Some((rank, media_type));
        }
    }
    best.map(|(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};

    use super::*;

    /// A range as a client writes it, with its quality in thousandths.
    fn any_range() -> impl Strategy<Value = (&'static str, u16)> {
        let names = sample::select(vec![
            "*/*",
            "application/*",
            "application/ld+json",
            "application/json",
            "application/problem+json",
            "text/html",
        ]);
        (names, 0..=1000_u16)
    }

    proptest! {
        /// The most specific range that matches a type decides; quality 0 rejects it.
        #[test]
        fn the_chosen_type_is_accepted(ranges in collection::vec(any_range(), 1..6)) {
            let accept: Vec<_> = ranges
                .iter()
                .map(|(name, quality)| format!("{name};q={}.{:03}", quality / 1000, quality % 1000))
                .collect();
            let value = HeaderValue::from_str(&accept.join(", ")).unwrap();
            let headers = HeaderMap::from_iter([(ACCEPT, value)]);
            let quality_of = |media_type: MediaType| {
                let names = [&format!("application/{}", media_type.subtype()), "application/*", "*/*"];
                names.into_iter().find_map(|name| {
                    let closest = ranges.iter().filter(|(range, _)| *range == name);
                    closest.map(|(_, quality)| *quality).next_back()
                })
            };

            match MediaType::of_resource(&headers).ok() {
                Some(chosen) => prop_assert!(quality_of(chosen) > Some(0), "{accept:?}"),
                None => for offered in [MediaType::JsonLd, MediaType::Json] {
                    prop_assert!(quality_of(offered).unwrap_or(0) == 0, "{accept:?}");
                },
            }
        }

        #[test]
        fn no_header_makes_the_parsers_panic(bytes in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let headers = HeaderMap::from_iter([(ACCEPT, value.clone()), (CONTENT_TYPE, value)]);
                let _ = MediaType::of_resource(&headers);
                let _ = MediaType::of_error(&headers);
                let _ = require_json(&Method::POST, &headers);
                let _ = may_be_form(&headers);
            }
        }
    }

    fn headers(name: http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_resource_is_json_ld_unless_plain_json_is_preferred() {
        for (accept, expected) in [
            ("", Some(MediaType::JsonLd)),
            ("*/*", Some(MediaType::JsonLd)),
            ("*", Some(MediaType::JsonLd)),
            ("application/*", Some(MediaType::JsonLd)),
            ("application/ld+json", Some(MediaType::JsonLd)),
            (
                "Application/LD+JSON; profile=\"x\"",
                Some(MediaType::JsonLd),
            ),
            ("APPLICATION/JSON", Some(MediaType::Json)),
            ("application/json, text/plain, */*", Some(MediaType::Json)),
            (
                "application/json, application/ld+json",
                Some(MediaType::JsonLd),
            ),
            (
                "application/ld+json;q=0.5, application/json;q=0.7",
                Some(MediaType::Json),
            ),
            ("application/ld+json;q=0, */*", Some(MediaType::Json)),
            ("text/html, */*; q=.2", Some(MediaType::JsonLd)),
            ("application/json;Q=0.001", Some(MediaType::Json)),
            ("application/problem+json", None),
            ("text/html", None),
            ("*/*;q=0", None),
            ("application/*;q=0, text/html", None),
            ("application/json;q=0.000", None),
            (
                "application/json;q=1, application/ld+json;q=.9",
                Some(MediaType::Json),
            ),
            (
                "application/json;q=1.000, application/ld+json;q=.9",
                Some(MediaType::Json),
            ),
        ] {
            let negotiated = MediaType::of_resource(&headers(ACCEPT, accept)).ok();

            assert_eq!(negotiated, expected, "{accept}");
        }
        assert_eq!(
            MediaType::of_resource(&HeaderMap::new()).ok(),
            Some(MediaType::JsonLd)
        );
    }

    #[test]
    fn a_malformed_range_is_ignored_and_a_header_without_another_accepts_every_type() {
        for malformed in [
            "garbage",
            "/",
            "application/",
            "/json",
            "*/json",
            "text/html/x",
            "text html/x",
            "text/html;q=",
            "text/html;q=x",
            "text/html;q=2",
            "text/html;q=1.5",
            "text/html;q=NaN",
            "text/html;q=-1",
            ", ;q=0,",
        ] {
            for (accept, expected) in [
                (malformed.to_owned(), Some(MediaType::JsonLd)),
                (
                    format!("{malformed}, application/json"),
                    Some(MediaType::Json),
                ),
                (format!("image/png, {malformed}"), None),
            ] {
                let value = HeaderValue::from_str(&accept).unwrap();
                let headers = HeaderMap::from_iter([(ACCEPT, value)]);

                let negotiated = MediaType::of_resource(&headers).ok();

                assert_eq!(negotiated, expected, "{accept}");
            }
        }
    }

    #[test]
    fn an_error_is_a_problem_only_if_that_is_preferred() {
        for (accept, expected) in [
            ("*/*", MediaType::JsonLd),
            ("text/html", MediaType::JsonLd),
            ("application/json", MediaType::Json),
            ("application/problem+json", MediaType::Problem),
            (
                "application/ld+json, application/problem+json",
                MediaType::JsonLd,
            ),
            (
                "application/ld+json;q=0.9, application/problem+json",
                MediaType::Problem,
            ),
        ] {
            assert_eq!(
                MediaType::of_error(&headers(ACCEPT, accept)),
                expected,
                "{accept}"
            );
        }
    }

    #[test]
    fn a_body_must_be_json_in_utf_8() {
        for right in [
            "application/ld+json",
            "application/json",
            "APPLICATION/JSON ; Charset=\"UTF-8\"",
            "application/ld+json;profile=\"x\";charset=utf8",
        ] {
            assert!(
                require_json(&Method::POST, &headers(CONTENT_TYPE, right)).is_ok(),
                "{right}"
            );
        }
        for wrong in [
            "",
            "application/json; charset=iso-8859-1",
            "application/json; charset=latin1",
            "application/x-www-form-urlencoded",
            "text/json",
            "application/jsonp",
        ] {
            assert!(
                require_json(&Method::POST, &headers(CONTENT_TYPE, wrong)).is_err(),
                "{wrong}"
            );
        }
        assert!(require_json(&Method::POST, &HeaderMap::new()).is_err());
        let patch = headers(CONTENT_TYPE, MERGE_PATCH);
        assert!(require_json(&Method::PATCH, &patch).is_ok());
        assert!(require_json(&Method::POST, &patch).is_err());
    }
}
