//! `/api/docs`: the interactive documentation page, its files and the guides beside it. A script adds what
//! can be tried from `/api/docs.json`; the browser loads nothing from other origins.

mod guides;
mod reference;

use std::sync::LazyLock;

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY},
};

use crate::{
    api_description,
    error::Error,
    representation::response_body::FixedBody,
    request::{self, HandlerResult, Request},
};

/// Permits the page its own files and calls to the API of its origin.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
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
    "page.js" "authorise.js" "client.js" "dom.js" "form.js" "guide.js" "highlight.js" "languages.js"
    "openapi.js" "operation.js" "request.js" "response.js" "samples.js" "schema.js" "search.js"
    "search_box.js" "theme.js" "webhooks.js"
};

/// Name and source of the examples that guides show.
static EXAMPLES: [&[(&str, &str)]; 4] = [
    texts! {
        "../../../../examples/receivers/" "":
        "receiver.php" "receiver.py" "receiver.mjs" "receiver.go" "receiver.rs"
    },
    texts! { "../../../../examples/shop/" "": "order.mjs" "order.php" "order.py" },
    texts! {
        "../../../../examples/courier/" "":
        "complete_task.py" "complete_task.go" "complete_task.rs" "courier.py"
    },
    texts! { "../../../../examples/dispatch/" "": "dispatch_board.py" },
];

/// Name and Markdown of every guide, in reading order.
static GUIDES: &[(&str, &str)] = texts! {
    "../../../../docs/guides/" ".md":
    "shop" "webhooks" "tracking" "internal-service" "times" "addresses" "prices" "idempotency" "errors"
    "requests" "coopcycle"
};

const HTML: &str = "text/html; charset=utf-8";

/// Not a redirect, whose absolute URL a proxy before the gateway may not know.
const ROOT: &str = r#"<!DOCTYPE html><title>API</title><meta http-equiv="refresh" content="0; url=api/docs">
<a href="api/docs">API documentation</a>
"#;

/// A file below `/api/docs/`.
pub(crate) struct File {
    pub(crate) name: &'static str,
    media_type: &'static str,
    content: FixedBody,
}

/// Style sheets, scripts, guides and the examples that they show.
pub(crate) static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let texts = [
        (STYLES, "text/css; charset=utf-8"),
        (SCRIPTS, "text/javascript; charset=utf-8"),
    ];
    let examples = EXAMPLES.map(|files| (files, "text/plain; charset=utf-8"));
    let unchanged = texts
        .into_iter()
        .chain(examples)
        .flat_map(|(files, media_type)| {
            files.iter().map(move |(name, text)| File {
                name,
                media_type,
                content: FixedBody::new(text.as_bytes()),
            })
        });
    let guides = GUIDES.iter().map(|(name, markdown)| File {
        name,
        media_type: HTML,
        content: FixedBody::new(guides::to_html(name, markdown)),
    });
    unchanged.chain(guides).collect()
});

/// `GET /api/docs`
pub(crate) fn get(request: &Request) -> Response<Bytes> {
    let gateway = &request.gateway;
    let html = gateway.documents.page.get_or_init(|| {
        let api = api_description::openapi(&gateway.platform_name, &gateway.public_url);
        FixedBody::new(reference::to_html(&api))
    });
    page(html.response())
}

/// `GET /`
pub(crate) fn get_root() -> Response<Bytes> {
    page(Response::new(ROOT.into()))
}

/// `GET /api/docs/{asset}`
pub(crate) fn get_file(request: &Request) -> HandlerResult {
    let mut files = FILES.iter();
    let found = files.find(|file| file.name == request.parameter);
    let file = found.ok_or_else(Error::no_such_path)?;
    Ok(match file.media_type {
        HTML => page(file.content.response()),
        media_type => request::with_content_type(media_type, file.content.response()),
    })
}

/// An HTML response with security headers.
pub(super) fn page(html: Response<Bytes>) -> Response<Bytes> {
    let mut response = request::with_content_type(HTML, html);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
