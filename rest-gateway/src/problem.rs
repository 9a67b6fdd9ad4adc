//! Renders every error as one JSON body with the members of Hydra, for existing clients, and of
//! RFC 9457.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt, Full};
use serde::Serialize;

use crate::{
    body::ResponseBody,
    error::{Error, RuleOutcome, Violation},
    error_codes,
    media_type::MediaType,
};

/// The part of a request that its error response depends on.
pub(crate) struct RequestContext {
    /// The `Accept` headers.
    pub(crate) accept: HeaderMap,
    pub(crate) request_id: String,
}

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

/// The response for an error, in the media type that the request prefers.
pub(crate) fn render(
    error: &Error,
    context: &RequestContext,
    public_url: &str,
) -> Response<ResponseBody> {
    let default = error.default_code();
    let code = error.specific_code().unwrap_or(default.code);
    // `type` is the URL of an existing page even if a newer core sends an unknown code.
    let documented = error_codes::find(code)
        .filter(|known| known.status == default.status)
        .unwrap_or(default);
    let violations: Option<Vec<_>> = match error {
        Error::Invalid { violations, .. } => Some(violations.iter().map(in_one_line).collect()),
        _ => None,
    };
    let detail = match &violations {
        Some(violations) => join_messages(violations),
        None => error.to_string(),
    };
    let (ld_context, ld_type) = match &violations {
        Some(_) => (
            "/api/contexts/ConstraintViolationList",
            "ConstraintViolationList",
        ),
        None => ("/api/contexts/Error", "hydra:Error"),
    };
    let problem = Problem {
        context: ld_context,
        ld_type,
        hydra_title: "An error occurred",
        hydra_description: &detail,
        r#type: format!("{public_url}/errors/{}", documented.code),
        title: documented.title,
        status: default.status.as_u16(),
        detail: &detail,
        code,
        retryable: documented.retryable,
        request_id: &context.request_id,
        existing: match error {
            Error::Conflict { existing, .. } => existing.as_deref().map(proto::iri::of),
            _ => None,
        },
        violations: violations.as_deref(),
        calculation: match error {
            Error::PriceNotCalculated(calculation) => Some(calculation),
            _ => None,
        },
    };
    // Cannot fail: all members are strings, numbers or booleans under fixed names.
    let body = serde_json::to_vec(&problem).unwrap_or_default();

    let body = Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = default.status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        MediaType::of_error(&context.accept).content_type(),
    );
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if let Some((name, value)) = header(error) {
        headers.insert(name, value);
    }
    response
}

/// The violation with control characters escaped. A path may contain keys of the client's, whose
/// line breaks would forge further lines of the description.
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

/// The header that some errors require.
fn header(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    match error {
        Error::Unauthenticated(detail) => {
            let challenge = match detail.code.as_str() {
                // RFC 6750 §3.1: no error code if the request had no token.
                "token_missing" => "Bearer realm=\"delivery\"".to_owned(),
                _ => format!(
                    "Bearer error=\"invalid_token\", error_description=\"{}\"",
                    quotable(&detail.message)
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
        | Error::LimitExceeded { retry_after, .. }
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
        | Error::IdempotencyKeyReused(_)
        | Error::Gone(_)
        | Error::TooLarge { .. }
        | Error::PreconditionFailed
        | Error::UnsupportedMediaType(_)
        | Error::TargetTooLong { .. }
        | Error::HeadersTooLarge { .. }
        | Error::DeadlineExceeded
        | Error::Internal(_)
        | Error::Panic => None,
    }
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
    use super::*;

    #[test]
    fn a_quotable_text_has_no_quote_or_backslash() {
        assert_eq!(quotable("a \"b\" \\ é\n"), "a 'b' / ??");
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
