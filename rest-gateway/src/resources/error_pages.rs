//! `/errors/{code}`: the page that the `type` of an error links to, with an example; one for each
//! violation code and each warning code too. `/errors` lists them.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::{
    api_description::{error_example, violation_example},
    error::Error,
    representation::{
        error_codes::{self, CodeTexts, ErrorCode, VIOLATIONS, WARNINGS, find_texts},
        media_type,
    },
    request::{HandlerResult, Request},
    resources::{docs_page, page_files},
};

/// `GET /errors`
pub(crate) fn list(request: &Request) -> Response<Bytes> {
    page(index(&request.gateway.platform_name))
}

/// `GET /errors/{code}`
pub(crate) fn get(request: &Request) -> HandlerResult {
    let code = request.parameter.as_str();
    let html = if let Some(error) = error_codes::find(code) {
        error_html(error, request)
    } else if let Some(violation) = find_texts(&VIOLATIONS, code) {
        let kind = "the code of a violation in a response with HTTP 400";
        code_html(violation, kind, None, violation_example(code), request)
    } else if let Some(warning) = find_texts(&WARNINGS, code) {
        let kind = "the code of a warning in the response that creates or validates a delivery";
        code_html(warning, kind, None, violation_example(code), request)
    } else if media_type::names_html(request.headers()) {
        let mut response = page(unknown_code(request));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    } else {
        return Err(Error::no_such_path());
    };
    Ok(page(html))
}

fn page(html: String) -> Response<Bytes> {
    let html = docs_page::with_files(html);
    page_files::page(Response::new(html.into()))
}

/// The page for a browser at a code that does not exist.
fn unknown_code(request: &Request) -> String {
    let code = escape(&request.parameter);
    include_str!("error_pages/code.html")
        .replace("<!-- title -->", "Unknown code")
        .replace("<!-- platform -->", &escape(&request.gateway.platform_name))
        .replace(
            "<!-- kind -->",
            &format!("There is no code <code>{code}</code>."),
        )
}

fn index(platform_name: &str) -> String {
    let entry = |code: &str, title: &str| {
        format!("<li><a href=\"errors/{code}\"><code>{code}</code></a>: {title}</li>\n")
    };
    let of_error = |error: &&ErrorCode| {
        let title = &error.texts().title;
        entry(
            error.code,
            &format!("{title} (HTTP {})", error.status.as_u16()),
        )
    };
    let of_violation = |code: &CodeTexts| entry(&code.code, &code.title);
    include_str!("error_pages/list.html")
        .replace("<!-- platform -->", &escape(platform_name))
        .replace(
            "<!-- errors -->",
            &error_codes::ALL.iter().map(of_error).collect::<String>(),
        )
        .replace(
            "<!-- violations -->",
            &VIOLATIONS.iter().map(of_violation).collect::<String>(),
        )
        .replace(
            "<!-- warnings -->",
            &WARNINGS.iter().map(of_violation).collect::<String>(),
        )
}

fn error_html(error: &'static ErrorCode, request: &Request) -> String {
    let retryable = if error.retryable {
        "Yes: the same request may succeed later."
    } else {
        "No: the same request fails again."
    };
    let kind = format!("HTTP {}", error.status);
    let example = error_example(error, &request.gateway.public_url);
    code_html(
        error.texts(),
        &kind,
        Some(retryable),
        Some(example),
        request,
    )
}

/// The page of a code; `kind` says where it occurs.
fn code_html(
    texts: &CodeTexts,
    kind: &str,
    retryable: Option<&str>,
    example: Option<Value>,
    request: &Request,
) -> String {
    let entries = [
        ("Meaning", &*texts.meaning),
        ("Cause", &*texts.cause),
        ("Solution", &*texts.solution),
        ("Retryable", retryable.unwrap_or_default()),
    ];
    let entries = entries
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>\n", to_html(text)));
    let example = example.map(|example| {
        let escaped = escape(&format!("{example:#}"));
        format!("<h2>Example</h2>\n<pre><code>{escaped}</code></pre>\n")
    });
    let kind = format!("<code>{}</code>, {kind}", texts.code);
    include_str!("error_pages/code.html")
        .replace("<!-- title -->", &texts.title)
        .replace("<!-- platform -->", &escape(&request.gateway.platform_name))
        .replace("<!-- kind -->", &kind)
        .replace("<!-- entries -->", &entries.collect::<String>())
        .replace("<!-- example -->", &example.unwrap_or_default())
}

/// Converts a text with code in backquotes to HTML.
fn to_html(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 0 {
            html.push_str(&escape(part));
        } else {
            html.push_str("<code>");
            html.push_str(&escape(part));
            html.push_str("</code>");
        }
    }
    html
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backquotes_become_code_elements_and_html_is_escaped() {
        assert_eq!(
            to_html("Send `Bearer <access_token>` & wait"),
            "Send <code>Bearer &lt;access_token&gt;</code> &amp; wait"
        );
    }
}
