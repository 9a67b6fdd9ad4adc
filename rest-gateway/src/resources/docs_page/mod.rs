//! `/api/docs`: the interactive documentation page, its files and the guides beside it. A script adds what
//! can be tried from `/api/docs.json`; the browser loads nothing from other origins.

mod guides;
mod reference;

use std::sync::LazyLock;

use bytes::Bytes;
use http::Response;

use crate::{
    api_description,
    representation::response_body::FixedBody,
    request::{HandlerResult, Request},
    resources::page_files::{self, PageFile},
};

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

/// Not a redirect, whose absolute URL a proxy before the gateway may not know.
const ROOT: &str = r#"<!DOCTYPE html><title>API</title><meta http-equiv="refresh" content="0; url=api/docs">
<a href="api/docs">API documentation</a>
"#;

/// Style sheets and scripts.
static ASSETS: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let styles = STYLES.iter().map(|(name, text)| {
        let text = match *name {
            "page.css" => [pages::COLOURS, text].concat(),
            _ => (*text).to_owned(),
        };
        PageFile::new(name, "text/css; charset=utf-8", text)
    });
    let media_type = "text/javascript; charset=utf-8";
    let scripts = SCRIPTS.iter();
    let scripts = scripts.map(|(name, text)| PageFile::new(name, media_type, *text));
    styles.chain(scripts).collect()
});

/// Guides, and the examples that they show.
static TEXTS: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let examples = EXAMPLES.into_iter().flatten();
    let examples =
        examples.map(|(name, text)| PageFile::new(name, "text/plain; charset=utf-8", *text));
    let guides = GUIDES.iter().map(|(name, markdown)| {
        let html = with_files(guides::to_html(name, markdown));
        PageFile::new(name, pages::HTML, html)
    });
    examples.chain(guides).collect()
});

/// `GET /api/docs`
pub(crate) fn get(request: &Request) -> Response<Bytes> {
    let gateway = &request.gateway;
    let html = gateway.documents.page.get_or_init(|| {
        let api = api_description::openapi(&gateway.platform_name, &gateway.public_url);
        FixedBody::new(with_files(reference::to_html(&api)))
    });
    page_files::page(html.response())
}

/// `GET /`
pub(crate) fn get_root() -> Response<Bytes> {
    page_files::page(Response::new(ROOT.into()))
}

/// `GET /api/docs/{asset}`
pub(crate) fn get_file(request: &Request) -> HandlerResult {
    page_files::get(ASSETS.iter().chain(&*TEXTS), request)
}

/// A page with the URLs of the files that it loads. Modules that its scripts load have none with a version.
pub(super) fn with_files(html: String) -> String {
    ASSETS.iter().fold(html, |html, PageFile { file, .. }| {
        html.replace(&format!("<!-- {} -->", file.name), &file.url())
    })
}
