//! `/errors/{code}`: the page that the `type` of an error links to.

use std::sync::Arc;

use crate::{
    error::Error,
    error_codes::{self, ErrorCode},
    gateway::{Gateway, HandlerResult},
    request::Request,
    resources::docs_page,
};
use bytes::Bytes;

/// `GET /errors/{code}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let code = error_codes::find(&request.parameter).ok_or_else(Error::no_such_path)?;

    let html = page(code, &gateway.platform_name);
    Ok(docs_page::page(Bytes::from(html)))
}

fn page(code: &ErrorCode, platform_name: &str) -> String {
    let ErrorCode {
        code,
        status,
        title,
        meaning,
        cause,
        solution,
        retryable,
    } = code;
    let platform_name = escape(platform_name);
    let (meaning, cause, solution) = (to_html(meaning), to_html(cause), to_html(solution));
    let retryable = if *retryable {
        "Yes: the same request may succeed later."
    } else {
        "No: the same request fails again."
    };
    format!(
        "<!DOCTYPE html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title} · {platform_name} API</title>\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"../api/docs/page.css\">\n\
         </head>\n\
         <body class=\"narrow\">\n\
         <h1>{title}</h1>\n\
         <p><code>{code}</code>, HTTP {status}</p>\n\
         <dl>\n\
         <dt>Meaning</dt><dd>{meaning}</dd>\n\
         <dt>Cause</dt><dd>{cause}</dd>\n\
         <dt>Solution</dt><dd>{solution}</dd>\n\
         <dt>Retryable</dt><dd>{retryable}</dd>\n\
         </dl>\n\
         <p><a href=\"../api/docs\">API documentation</a></p>\n\
         </body>\n\
         </html>\n"
    )
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
