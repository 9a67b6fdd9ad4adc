//! The files below `/api/docs/`: style sheets, scripts, guides and the receivers that they show.

use std::sync::LazyLock;

use bytes::Bytes;

use super::guides;

pub(super) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Name, media type and content of every file.
pub(crate) static FILES: LazyLock<Vec<(&str, &str, Bytes)>> = LazyLock::new(|| {
    let texts = [(STYLES, CSS), (SCRIPTS, JAVASCRIPT), (RECEIVERS, TEXT)];
    let texts = texts.into_iter().flat_map(|(texts, media_type)| {
        texts
            .iter()
            .map(move |(name, text)| (*name, media_type, Bytes::from_static(text.as_bytes())))
    });
    let guides = guides::ALL
        .iter()
        .map(|(name, text)| (*name, HTML, Bytes::from(guides::to_html(name, text))));
    texts.chain(guides).collect()
});

/// Name and text of files in a folder; the names are without the ending.
macro_rules! texts {
    ($folder:literal $ending:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name, $ending)))),*]
    };
}
pub(super) use texts;

static STYLES: &[(&str, &str)] = texts! { "" "": "page.css" "operation.css" };

static SCRIPTS: &[(&str, &str)] = texts! {
    "" "":
    "page.js" "authorise.js" "client.js" "demo.js" "dom.js" "form.js" "guide.js" "languages.js"
    "openapi.js" "operation.js" "request.js" "response.js" "samples.js" "schema.js" "search.js"
    "search_box.js" "webhooks.js"
};

pub(super) static RECEIVERS: &[(&str, &str)] = texts! {
    "../../../../examples/receivers/" "":
    "receiver.php" "receiver.py" "receiver.mjs" "receiver.go" "receiver.rs"
};
