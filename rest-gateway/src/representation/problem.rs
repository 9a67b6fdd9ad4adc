//! Logs every error, and renders it as one JSON body with the members of Hydra, for existing clients, and of
//! RFC 9457.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
};
use proto::RuleOutcome;
use serde::Serialize;

use crate::{
    error::{Details, Error, Violation},
    representation::{
        error_codes as codes,
        language::{self, AcceptLanguage, ENGLISH},
        media_type::MediaType,
        messages,
    },
    request::REQUEST_ID,
};

/// The body of an error response.
#[derive(Serialize)]
pub(crate) struct Problem<'a> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(rename = "hydra:title")]
    hydra_title: Cow<'static, str>,
    #[serde(rename = "hydra:description")]
    hydra_description: String,
    r#type: String,
    title: Cow<'static, str>,
    status: u16,
    detail: String,
    code: &'a str,
    retryable: bool,
    #[serde(rename = "requestId")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<Violation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calculation: Option<&'a [RuleOutcome]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
    /// Whether all texts are in the client's language; otherwise some are in English.
    #[serde(skip)]
    is_translated: bool,
}

impl<'a> Problem<'a> {
    /// The messages of violations and warnings are in this language, and with violations the titles.
    pub(crate) fn new(
        error: &'a Error,
        request_id: &'a str,
        public_url: &str,
        language: &str,
    ) -> Self {
        let kind = error.kind;
        let shown = |violations: &[Violation]| {
            let mut shown: Vec<_> = violations.iter().map(in_one_line).collect();
            let are_translated = messages::translate_all(&mut shown, language);
            (shown, are_translated)
        };
        let (warnings, are_warnings_translated) = shown(&error.warnings);
        let mut problem = Self {
            context: "/api/contexts/Error",
            ld_type: "hydra:Error",
            hydra_title: "An error occurred".into(),
            hydra_description: String::new(),
            // The URL of an existing page even if a newer core sends an unknown code.
            r#type: format!("{public_url}/errors/{}", kind.code),
            title: kind.texts().title.as_str().into(),
            status: kind.status.as_u16(),
            detail: error.message.clone(),
            code: &error.code,
            retryable: kind.retryable,
            request_id,
            existing: None,
            violations: None,
            calculation: None,
            warnings,
            is_translated: false,
        };
        match &error.details {
            Details::Violations(violations) => {
                let (violations, are_translated) = shown(violations);
                problem.is_translated = are_translated && are_warnings_translated;
                for title in [&mut problem.hydra_title, &mut problem.title] {
                    match messages::translate_title(title, language) {
                        Some(translated) => *title = translated.into(),
                        None => problem.is_translated = false,
                    }
                }
                problem.context = "/api/contexts/ConstraintViolationList";
                problem.ld_type = "ConstraintViolationList";
                problem.detail = join_messages(&violations);
                problem.violations = Some(violations);
            }
            Details::Existing(name) => problem.existing = Some(proto::iri::of(name)),
            Details::Calculation(calculation) => problem.calculation = Some(calculation),
            _ => {}
        }
        problem.hydra_description.clone_from(&problem.detail);
        problem
    }
}

/// Logs an error, at the level that fits its cause. Errors are logged only here.
pub(crate) fn log(error: &Error) {
    let source = error.source.as_deref();
    if *error.kind == codes::INTERNAL {
        if let Some(source) = source {
            let source: &(dyn std::error::Error + 'static) = source;
            tracing::error!(error = source, "request failed");
        }
    } else if let Some(source) = source {
        tracing::warn!(error = %source, "core unavailable");
    } else if [codes::DEADLINE_EXCEEDED.code, codes::OVERLOADED.code].contains(&error.kind.code) {
        tracing::warn!(%error, "request not served");
    } else {
        tracing::debug!(%error, "request rejected");
    }
}

/// The response for an error, in the media type and the language that the request prefers.
pub(crate) fn render(
    error: &Error,
    request_headers: &HeaderMap,
    public_url: &str,
) -> Response<Bytes> {
    let has_messages =
        matches!(error.details, Details::Violations(_)) || !error.warnings.is_empty();
    let language = has_messages.then(|| AcceptLanguage::of(request_headers).of_messages());
    let request_id = request_headers.get(&REQUEST_ID);
    let problem = Problem::new(
        error,
        request_id.map_or("", |id| id.to_str().unwrap_or_default()),
        public_url,
        language.unwrap_or(ENGLISH),
    );
    // Cannot fail: all members are strings, numbers or booleans under fixed names.
    let body = serde_json::to_vec(&problem).unwrap_or_default();

    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = error.kind.status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        MediaType::of_error(request_headers).content_type(),
    );
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if let Some((name, value)) = header(error) {
        headers.insert(name, value);
    }
    let language = language.map(|tag| language::of_texts(tag, problem.is_translated));
    language::declare(response, language.as_deref())
}

/// The violation with control characters escaped, of which templates have none. A path may contain keys of the
/// client's, whose line breaks would forge further lines of the description.
fn in_one_line(violation: &Violation) -> Violation {
    let escaped = |text: &str| {
        let mut line = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\u{2028}' | '\u{2029}' => line.extend(character.escape_default()),
                _ if character.is_control() => line.extend(character.escape_default()),
                _ => line.push(character),
            }
        }
        line
    };
    Violation {
        path: escaped(&violation.path),
        message: escaped(&violation.message),
        code: violation.code.clone(),
    }
}

/// The messages of violations, one per line.
fn join_messages(violations: &[Violation]) -> String {
    let lines = violations.iter().map(|violation| {
        let Violation { path, message, .. } = violation;
        match path.as_str() {
            "" => message.clone(),
            path => format!("{path}: {message}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The header that some errors require.
fn header(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = match &error.details {
        Details::Allow(methods) => (ALLOW, methods.clone()),
        Details::RetryAfter(seconds) => (RETRY_AFTER, seconds.to_string()),
        Details::Scope(scope) => {
            let scope = match scope.as_str() {
                "" => String::new(),
                scope => format!(", scope=\"{}\"", quotable(scope)),
            };
            let challenge = format!("Bearer error=\"insufficient_scope\"{scope}");
            (WWW_AUTHENTICATE, challenge)
        }
        // RFC 6750 §3.1: no error code if the request had no token.
        _ if *error.kind == codes::TOKEN_MISSING => {
            (WWW_AUTHENTICATE, "Bearer realm=\"delivery\"".to_owned())
        }
        _ if error.kind.status == StatusCode::UNAUTHORIZED => {
            let message = quotable(&error.message);
            let challenge =
                format!("Bearer error=\"invalid_token\", error_description=\"{message}\"");
            (WWW_AUTHENTICATE, challenge)
        }
        _ => return None,
    };
    Some((name, HeaderValue::from_str(&value).ok()?))
}

/// Replaces the characters that quoted strings of RFC 6749 and RFC 6750 must not contain: `"`, `\`
/// and all that are not printable ASCII.
pub(crate) fn quotable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '"' => '\'',
            '\\' => '/',
            ' '..='~' => character,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE};

    use super::*;

    #[test]
    fn a_quotable_text_has_no_quote_or_backslash() {
        assert_eq!(quotable("a \"b\" \\ é\n"), "a 'b' / ??");
    }

    #[test]
    fn only_an_error_of_authentication_has_a_challenge() {
        for (code, expected) in [
            (&codes::TOKEN_MISSING, Some("Bearer realm=\"delivery\"")),
            (
                &codes::UNAUTHENTICATED,
                Some("Bearer error=\"invalid_token\", error_description=\"no\""),
            ),
            (&codes::NOT_FOUND, None),
            (&codes::INTERNAL, None),
        ] {
            let header = header(&Error::new(code, "no"));

            let expected =
                expected.map(|value| (WWW_AUTHENTICATE, HeaderValue::from_static(value)));
            assert_eq!(header, expected, "{}", code.code);
        }
    }

    #[test]
    fn the_language_is_declared_and_english_too_if_a_text_stays_in_it() {
        let violation = |message: &str| Violation {
            path: String::new(),
            message: message.to_owned(),
            code: "required".to_owned(),
        };
        let invalid = |message| Error::invalid(vec![violation(message)]);
        let warned = |error| Error {
            warnings: Box::new([violation("is required by a newer core")]),
            ..error
        };
        for (error, in_german, in_english) in [
            (invalid("is required"), Some("de"), Some("en")),
            (
                invalid("is required by a newer core"),
                Some("de, en"),
                Some("en"),
            ),
            (warned(invalid("is required")), Some("de, en"), Some("en")),
            (
                warned(Error::new(&codes::NOT_FOUND, "no")),
                Some("de, en"),
                Some("en"),
            ),
            (Error::new(&codes::NOT_FOUND, "no"), None, None),
        ] {
            for (accepted, expected) in [("de", in_german), ("en", in_english)] {
                let accepted = (ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));

                let response = render(&error, &HeaderMap::from_iter([accepted]), "");

                let language = response.headers().get(CONTENT_LANGUAGE);
                let expected = expected.map(HeaderValue::from_static);
                assert_eq!(language, expected.as_ref(), "{error}: {expected:?}");
            }
        }
    }

    #[test]
    fn a_key_with_line_breaks_forges_no_line() {
        let violation = Violation {
            path: "dropoff.metadata.a\r\nb\u{2028}c\u{0}é".to_owned(),
            message: "is\nwrong".to_owned(),
            code: "wrong".to_owned(),
        };

        let Violation { path, message, .. } = in_one_line(&violation);

        assert_eq!(path, r"dropoff.metadata.a\r\nb\u{2028}c\u{0}é");
        assert_eq!(message, r"is\nwrong");
    }

    #[test]
    fn a_violation_of_the_whole_body_has_no_path_before_its_message() {
        let violation = |path: &str| Violation {
            path: path.to_owned(),
            message: "is wrong".to_owned(),
            code: "wrong".to_owned(),
        };

        let lines = join_messages(&[violation(""), violation("dropoff.before")]);

        assert_eq!(lines, "is wrong\ndropoff.before: is wrong");
    }
}
