//! The one form of every failure: an error in the words of Hydra, which today's clients read,
//! and of RFC 9457 at once.

use std::{borrow::Cow, fmt::Write as _};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt, Full};
use serde::Serialize;

use crate::{
    error::{Error, Violation},
    error_codes,
    media_type::MediaType,
    rescue::Asked,
    resources::retail_prices::RuleOutcome,
    stack::Body,
};

#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(rename = "hydra:title")]
    hydra_title: &'static str,
    #[serde(rename = "hydra:description")]
    hydra_description: &'a str,
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    retryable: bool,
    #[serde(rename = "requestId")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calculation: Option<&'a [RuleOutcome]>,
}

/// The answer that tells a failure, in the form the request prefers.
pub(crate) fn render(error: &Error, asked: &Asked, public_url: &str) -> Response<Body> {
    let general = error.general_code();
    let code = error.particular_code().unwrap_or(general.code);
    // `type` always leads to a page, also when a newer core gives a code unknown here.
    let explained = error_codes::find(code)
        .filter(|known| known.status == general.status)
        .unwrap_or(general);
    let detail = match error {
        Error::Invalid { violations, .. } => Cow::Owned(lines(violations)),
        _ => Cow::Owned(error.to_string()),
    };
    let violations = match error {
        Error::Invalid { violations, .. } => Some(violations.as_slice()),
        _ => None,
    };
    let (context, ld_type) = match violations {
        Some(_) => (
            "/api/contexts/ConstraintViolationList",
            "ConstraintViolationList",
        ),
        None => ("/api/contexts/Error", "hydra:Error"),
    };
    let problem = Problem {
        context,
        ld_type,
        hydra_title: "An error occurred",
        hydra_description: &detail,
        r#type: format!("{public_url}/errors/{}", explained.code),
        title: explained.title,
        status: general.status.as_u16(),
        detail: &detail,
        code,
        retryable: explained.retryable,
        request_id: &asked.request_id,
        existing: match error {
            Error::Conflict { existing, .. } => existing.as_deref().map(proto::iri::of),
            _ => None,
        },
        violations,
        calculation: match error {
            Error::PriceNotCalculated(calculation) => Some(calculation),
            _ => None,
        },
    };
    // Strings, numbers and booleans under fixed names: JSON has them all.
    let body = serde_json::to_vec(&problem).unwrap_or_default();

    let body = Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = general.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, MediaType::of_error(&asked.accept).label());
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if let Some((name, value)) = header(error) {
        headers.insert(name, value);
    }
    response
}

/// One violation a line.
fn lines(violations: &[Violation]) -> String {
    let mut lines = String::new();
    for violation in violations {
        if !lines.is_empty() {
            lines.push('\n');
        }
        if !violation.path.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(lines, "{}: ", violation.path);
        }
        lines.push_str(&violation.message);
    }
    lines
}

/// The header some failures must carry.
fn header(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    match error {
        Error::Unauthenticated(refusal) => {
            let challenge = match refusal.code.as_str() {
                // RFC 6750 §3.1: who sent no token is told no error.
                "token_missing" => "Bearer realm=\"delivery\"".to_owned(),
                _ => format!(
                    "Bearer error=\"invalid_token\", error_description=\"{}\"",
                    quotable(&refusal.message)
                ),
            };
            Some((WWW_AUTHENTICATE, HeaderValue::from_str(&challenge).ok()?))
        }
        Error::Forbidden { scope, .. } => {
            let mut challenge = "Bearer error=\"insufficient_scope\"".to_owned();
            if !scope.is_empty() {
                challenge.push_str(", scope=\"");
                challenge.push_str(&quotable(scope));
                challenge.push('"');
            }
            Some((WWW_AUTHENTICATE, HeaderValue::from_str(&challenge).ok()?))
        }
        Error::MethodNotAllowed { allow } => Some((ALLOW, HeaderValue::from_str(allow).ok()?)),
        Error::Conflict {
            retry_after: Some(retry_after),
            ..
        }
        | Error::Exhausted { retry_after, .. }
        | Error::Overloaded { retry_after }
        | Error::Unavailable { retry_after, .. } => Some((RETRY_AFTER, (*retry_after).into())),
        Error::Invalid { .. }
        | Error::PriceNotCalculated(_)
        | Error::NotFound(_)
        | Error::NotAcceptable
        | Error::RequestTimeout
        | Error::Conflict {
            retry_after: None, ..
        }
        | Error::KeyReused(_)
        | Error::Gone(_)
        | Error::TooLarge { .. }
        | Error::UnsupportedMediaType(_)
        | Error::Timeout
        | Error::Internal(_)
        | Error::Panic => None,
    }
}

/// What the quoted texts of RFC 6749 and RFC 6750 may hold: printable ASCII without `"` and `\`.
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
    use super::*;

    #[test]
    fn a_quoted_text_has_nothing_that_ends_or_escapes_it() {
        assert_eq!(quotable("a \"b\" \\ é\n"), "a 'b' / ??");
    }

    #[test]
    fn a_violation_of_the_whole_body_has_no_path_before_its_message() {
        let violation = |path: &str| Violation {
            path: path.to_owned(),
            message: "is wrong".to_owned(),
            code: "wrong".to_owned(),
        };

        let lines = lines(&[violation(""), violation("dropoff.before")]);

        assert_eq!(lines, "is wrong\ndropoff.before: is wrong");
    }
}
