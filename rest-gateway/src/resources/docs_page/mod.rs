//! `/api/docs`: a page to read and try the API. It is made in the browser of `/api/docs.json`;
//! nothing of it comes from elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

use crate::{
    error::Error,
    request::Request,
    routes::{Answer, Gateway},
};

/// What a page of ours may load and do: its own files, and calls of the API it came from.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files, by their names.
pub(crate) static FILES: &[(&str, &str, &str)] = &[
    ("page.css", CSS, include_str!("page.css")),
    ("page.js", JAVASCRIPT, include_str!("page.js")),
    ("operation.js", JAVASCRIPT, include_str!("operation.js")),
    ("schema.js", JAVASCRIPT, include_str!("schema.js")),
    ("trying.js", JAVASCRIPT, include_str!("trying.js")),
    ("dom.js", JAVASCRIPT, include_str!("dom.js")),
];

/// `GET /api/docs`
pub(crate) async fn get(_: Arc<Gateway>, _: Request) -> Answer {
    Ok(page(Bytes::from_static(include_bytes!("page.html"))))
}

/// `GET /api/docs/{file}`
pub(crate) async fn get_file(_: Arc<Gateway>, request: Request) -> Answer {
    let (_, media_type, text) = FILES
        .iter()
        .find(|(name, ..)| *name == request.parameter)
        .ok_or_else(Error::no_such_path)?;
    Ok(file(media_type, Bytes::from_static(text.as_bytes())))
}

/// An answer that people read in a browser.
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
