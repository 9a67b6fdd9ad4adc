//! The language of the texts in a response.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response,
    header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, VARY},
};
use proto::language::LANGUAGES;

/// The language in which messages are made.
pub(crate) const ENGLISH: &str = "en";

/// The `Accept-Language` of a request with these headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptLanguage<'h>(&'h HeaderMap);

impl<'h> AcceptLanguage<'h> {
    pub(crate) fn of(headers: &'h HeaderMap) -> Self {
        Self(headers)
    }

    /// All lines in one (RFC 9110 §5.3).
    pub(crate) fn joined(self) -> String {
        let lines = self.0.get_all(ACCEPT_LANGUAGE).iter();
        let texts: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
        texts.join(", ")
    }

    /// The preferred language of messages; English if none of [`LANGUAGES`] is accepted.
    pub(crate) fn of_messages(self) -> &'static str {
        let chosen = proto::language::negotiate(&self.joined(), ENGLISH, &LANGUAGES);
        chosen.unwrap_or(ENGLISH)
    }
}

/// The `Content-Language` of messages in a language, of which some may have stayed in English (RFC 9110
/// §8.5).
pub(crate) fn of_texts(language: &str, are_translated: bool) -> String {
    match language {
        _ if are_translated => language.to_owned(),
        ENGLISH => ENGLISH.to_owned(),
        _ => format!("{language}, {ENGLISH}"),
    }
}

/// Declares the language of the texts in a response, which `Accept-Language` has chosen; empty if it is
/// unknown. Without a language, the response has no such texts.
pub(crate) fn declare(mut response: Response<Bytes>, language: Option<&str>) -> Response<Bytes> {
    let Some(language) = language else {
        return response;
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("accept-language"));
    if let Ok(language) = HeaderValue::from_str(language)
        && !language.is_empty()
    {
        headers.insert(CONTENT_LANGUAGE, language);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_texts_declares_their_language_and_varies_by_it() {
        for (language, expected) in [
            (Some("fr"), (Some("fr"), Some("accept-language"))),
            (Some("fr, en"), (Some("fr, en"), Some("accept-language"))),
            (Some(""), (None, Some("accept-language"))),
            (Some("a\nb"), (None, Some("accept-language"))),
            (None, (None, None)),
        ] {
            let response = declare(Response::new(Bytes::new()), language);

            let header = |name| {
                let value: Option<&HeaderValue> = response.headers().get(name);
                value.and_then(|value| value.to_str().ok())
            };
            assert_eq!((header(CONTENT_LANGUAGE), header(VARY)), expected);
        }
    }

    #[test]
    fn messages_are_in_the_preferred_language_of_all_lines_and_in_english_without_one() {
        for (lines, expected) in [
            (&["pl, de;q=0.5", "it"][..], "it"),
            (&["pl", "de;q=0.5"], "de"),
            (&["nl-BE"], "nl"),
            (&["pl"], "en"),
            (&["é"], "en"),
            (&[], "en"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(
                    ACCEPT_LANGUAGE,
                    HeaderValue::from_bytes(line.as_bytes()).unwrap(),
                );
            }

            assert_eq!(
                AcceptLanguage::of(&headers).of_messages(),
                expected,
                "{lines:?}"
            );
        }
    }
}
