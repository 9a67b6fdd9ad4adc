//! `/api/docs`: the interactive documentation page, its files and the guides beside it. The browser
//! renders the reference from `/api/docs.json`; it loads nothing from other origins.

mod files;
mod guides;
mod texts;

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

pub(crate) use self::files::FILES;
use self::files::HTML;
use crate::{
    error::Error,
    gateway::{self, HandlerResult},
    request::Request,
};

/// Permits the page its own files and calls to the API of its origin.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// `GET /api/docs`
pub(crate) fn get(request: &Request) -> Response<Bytes> {
    let mut html =
        include_str!("page.html").replace("<!-- guides -->", &guides::links("docs/", ""));
    if request.gateway.demo_courier.is_some() {
        html = html.replace("<html lang=\"en\">", "<html lang=\"en\" data-demo>");
    }
    page(html.into())
}

/// `GET /api/docs/{asset}`
pub(crate) fn get_file(request: &Request) -> HandlerResult {
    let (_, media_type, content) = FILES
        .iter()
        .find(|(name, ..)| *name == request.parameter)
        .ok_or_else(Error::no_such_path)?;
    Ok(match *media_type {
        HTML => page(content.clone()),
        media_type => file(media_type, content.clone()),
    })
}

/// An HTML response with security headers.
pub(super) fn page(html: Bytes) -> Response<Bytes> {
    let mut response = file(HTML, html);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn file(media_type: &'static str, content: Bytes) -> Response<Bytes> {
    let mut response = gateway::response(media_type, content);
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
