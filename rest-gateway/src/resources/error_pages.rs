//! `/errors/{code}`: the page that the `type` of an error links to, with an example; one for each
//! violation code and each warning code too. `/errors` lists them.

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use crate::{
    api_description::{error_example, violation_example},
    error::Error,
    gateway::HandlerResult,
    representation::{
        error_codes::{self, ErrorCode},
        violation_codes::{self, VIOLATIONS, ViolationCode, WARNINGS},
    },
    request::Request,
    resources::docs_page,
};

/// `GET /errors`
pub(crate) fn list(request: &Request) -> Response<Bytes> {
    docs_page::page(Bytes::from(index(&request.gateway.platform_name)))
}

/// `GET /errors/{code}`
pub(crate) fn get(request: &Request) -> HandlerResult {
    let code = request.parameter.as_str();
    let platform_name = &request.gateway.platform_name;
    let html = if let Some(error) = error_codes::find(code) {
        error_page(error, platform_name, &request.gateway.public_url)
    } else if let Some(violation) = violation_codes::find(&VIOLATIONS, code) {
        let place = "a violation in a response with HTTP 400";
        violation_page(violation, place, platform_name)
    } else if let Some(warning) = violation_codes::find(&WARNINGS, code) {
        let place = "a warning in the response that creates or validates a delivery";
        violation_page(warning, place, platform_name)
    } else {
        return Err(Error::no_such_path());
    };
    Ok(docs_page::page(Bytes::from(html)))
}

fn index(platform_name: &str) -> String {
    let entry = |code: &str, title: &str| {
        format!("<li><a href=\"errors/{code}\"><code>{code}</code></a>: {title}</li>\n")
    };
    let of_error = |error: &&ErrorCode| {
        let title = format!("{} (HTTP {})", error.title, error.status.as_u16());
        entry(error.code, &title)
    };
    let of_violation = |code: &ViolationCode| entry(&code.code, &code.title);
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

fn error_page(error: &'static ErrorCode, platform_name: &str, public_url: &str) -> String {
    let retryable = if error.retryable {
        "Yes: the same request may succeed later."
    } else {
        "No: the same request fails again."
    };
    let kind = format!("<code>{}</code>, HTTP {}", error.code, error.status);
    let entries = [
        ("Meaning", error.meaning),
        ("Cause", error.cause),
        ("Solution", error.solution),
        ("Retryable", retryable),
    ];
    let example = error_example(error, public_url);
    page(
        (error.title, &kind),
        &entries,
        Some(&example),
        platform_name,
    )
}

/// The page of a violation or warning code; `place` says where it occurs.
fn violation_page(violation: &ViolationCode, place: &str, platform_name: &str) -> String {
    let kind = format!("<code>{}</code>, the code of {place}", violation.code);
    let entries = [
        ("Cause", violation.cause.as_str()),
        ("Solution", violation.solution.as_str()),
    ];
    let example = violation_example(&violation.code);
    page(
        (&violation.title, &kind),
        &entries,
        example.as_ref(),
        platform_name,
    )
}

fn page(
    (title, kind): (&str, &str),
    entries: &[(&str, &str)],
    example: Option<&Value>,
    platform_name: &str,
) -> String {
    let entries = entries
        .iter()
        .map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>\n", to_html(text)));
    let example = example.map_or_else(String::new, |example| {
        let example = escape(&format!("{example:#}"));
        format!("<h2>Example</h2>\n<pre><code>{example}</code></pre>\n")
    });
    include_str!("error_pages/code.html")
        .replace("<!-- title -->", title)
        .replace("<!-- platform -->", &escape(platform_name))
        .replace("<!-- kind -->", kind)
        .replace("<!-- entries -->", &entries.collect::<String>())
        .replace("<!-- example -->", &example)
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

fn escape(text: &str) -> String {
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
