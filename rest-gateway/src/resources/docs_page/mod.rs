//! `/api/docs`: the interactive documentation page. The browser renders it from `/api/docs.json`;
//! it loads nothing from other origins.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

use crate::{
    error::Error,
    gateway::{Gateway, HandlerResult},
    request::Request,
};

/// Permits the page its own files and calls to the API of its origin.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files: name, media type and content.
pub(crate) static FILES: &[(&str, &str, &str)] = &[
    ("page.css", CSS, include_str!("page.css")),
    ("page.js", JAVASCRIPT, include_str!("page.js")),
    ("operation.js", JAVASCRIPT, include_str!("operation.js")),
    ("schema.js", JAVASCRIPT, include_str!("schema.js")),
    ("client.js", JAVASCRIPT, include_str!("client.js")),
    ("dom.js", JAVASCRIPT, include_str!("dom.js")),
];

/// `GET /api/docs`
pub(crate) async fn get(_: Arc<Gateway>, _: Request) -> HandlerResult {
    Ok(page(Bytes::from_static(include_bytes!("page.html"))))
}

/// `GET /api/docs/{file}`
pub(crate) async fn get_file(_: Arc<Gateway>, request: Request) -> HandlerResult {
    let (_, media_type, text) = FILES
        .iter()
        .find(|(name, ..)| *name == request.parameter)
        .ok_or_else(Error::no_such_path)?;
    Ok(file(media_type, Bytes::from_static(text.as_bytes())))
}

/// An HTML response with security headers.
pub(super) fn page(html: Bytes) -> Response<Bytes> {
    let mut response = file(HTML, html);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn file(media_type: &'static str, text: Bytes) -> Response<Bytes> {
    let mut response = Response::new(text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
