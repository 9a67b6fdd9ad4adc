//! `/errors/{code}`: the page to which the `type` of an error leads.

use std::sync::Arc;

use crate::{
    error::Error,
    error_codes::{self, ErrorCode},
    request::Request,
    resources::docs_page,
    routes::{Answer, Gateway},
};
use bytes::Bytes;

/// `GET /errors/{code}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
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
        cure,
        retryable,
    } = code;
    let platform_name = escape(platform_name);
    let (meaning, cause, cure) = (mark_up(meaning), mark_up(cause), mark_up(cure));
    let retryable = if *retryable {
        "Yes: the same request may succeed later."
    } else {
        "No: the same request will fail again."
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
         <dt>Cure</dt><dd>{cure}</dd>\n\
         <dt>Retryable</dt><dd>{retryable}</dd>\n\
         </dl>\n\
         <p><a href=\"../api/docs\">The API</a></p>\n\
         </body>\n\
         </html>\n"
    )
}

/// HTML of a text in which backquotes stand around what is code.
fn mark_up(text: &str) -> String {
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
    fn what_stands_in_backquotes_is_code_and_nothing_is_markup() {
        assert_eq!(
            mark_up("Send `Bearer <access_token>` & wait"),
            "Send <code>Bearer &lt;access_token&gt;</code> &amp; wait"
        );
    }
}
