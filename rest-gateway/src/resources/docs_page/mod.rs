//! `/api/docs`: the interactive documentation page, its files and the guides beside it. The browser
//! renders the reference from `/api/docs.json`; it loads nothing from other origins.

mod guides;

use std::sync::LazyLock;

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
};

use crate::{
    error::Error,
    request::{self, HandlerResult, Request},
};

/// Permits the page its own files and calls to the API of its origin.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Name and text of files in a folder; the names are without the ending.
macro_rules! texts {
    ($folder:literal $ending:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name, $ending)))),*]
    };
}

static STYLES: &[(&str, &str)] = texts! { "" "": "page.css" "operation.css" };

static SCRIPTS: &[(&str, &str)] = texts! {
    "" "":
    "page.js" "authorise.js" "client.js" "demo.js" "dom.js" "form.js" "guide.js" "languages.js"
    "openapi.js" "operation.js" "request.js" "response.js" "samples.js" "schema.js" "search.js"
    "search_box.js" "webhooks.js"
};

static RECEIVERS: &[(&str, &str)] = texts! {
    "../../../../examples/receivers/" "":
    "receiver.php" "receiver.py" "receiver.mjs" "receiver.go" "receiver.rs"
};

/// Name and Markdown of every guide, in reading order.
static GUIDES: &[(&str, &str)] = texts! {
    "../../../../docs/guides/" ".md":
    "shop" "webhooks" "internal-service" "times" "addresses" "prices" "idempotency" "errors"
    "requests" "coopcycle"
};

const HTML: &str = "text/html; charset=utf-8";

/// A file below `/api/docs/`.
pub(crate) struct File {
    pub(crate) name: &'static str,
    media_type: &'static str,
    content: Bytes,
}

/// Style sheets, scripts, guides and the receivers that they show.
pub(crate) static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let texts = [
        (STYLES, "text/css; charset=utf-8"),
        (SCRIPTS, "text/javascript; charset=utf-8"),
        (RECEIVERS, "text/plain; charset=utf-8"),
    ];
    let unchanged = texts.into_iter().flat_map(|(files, media_type)| {
        files.iter().map(move |(name, text)| File {
            name,
            media_type,
            content: Bytes::from_static(text.as_bytes()),
        })
    });
    let guides = GUIDES.iter().map(|(name, markdown)| File {
        name,
        media_type: HTML,
        content: guides::to_html(name, markdown).into(),
    });
    unchanged.chain(guides).collect()
});

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
    let mut files = FILES.iter();
    let found = files.find(|file| file.name == request.parameter);
    let file = found.ok_or_else(Error::no_such_path)?;
    Ok(match file.media_type {
        HTML => page(file.content.clone()),
        media_type => secured(media_type, file.content.clone()),
    })
}

/// An HTML response with security headers.
pub(super) fn page(html: Bytes) -> Response<Bytes> {
    let mut response = secured(HTML, html);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A response whose media type browsers must not guess.
fn secured(media_type: &'static str, content: Bytes) -> Response<Bytes> {
    let mut response = request::response(media_type, content);
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
