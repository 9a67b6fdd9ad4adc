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
    let page = PAGE
        .iter()
        .map(|(name, media_type, text)| (*name, *media_type, Bytes::from_static(text.as_bytes())));
    let receivers = RECEIVERS
        .iter()
        .map(|(name, text)| (*name, TEXT, Bytes::from_static(text.as_bytes())));
    let guides = guides::ALL
        .iter()
        .map(|(name, text)| (*name, HTML, Bytes::from(guides::to_html(name, text))));
    page.chain(receivers).chain(guides).collect()
});

macro_rules! page_files {
    ($($media_type:ident $name:literal)*) => {
        static PAGE: &[(&str, &str, &str)] = &[$(($name, $media_type, include_str!($name))),*];
    };
}

page_files! {
    CSS "page.css"
    CSS "operation.css"
    JAVASCRIPT "page.js"
    JAVASCRIPT "authorise.js"
    JAVASCRIPT "client.js"
    JAVASCRIPT "demo.js"
    JAVASCRIPT "dom.js"
    JAVASCRIPT "form.js"
    JAVASCRIPT "guide.js"
    JAVASCRIPT "languages.js"
    JAVASCRIPT "openapi.js"
    JAVASCRIPT "operation.js"
    JAVASCRIPT "request.js"
    JAVASCRIPT "response.js"
    JAVASCRIPT "samples.js"
    JAVASCRIPT "schema.js"
    JAVASCRIPT "search.js"
    JAVASCRIPT "search_box.js"
    JAVASCRIPT "webhooks.js"
}

macro_rules! receivers {
    ($($name:literal)*) => {
        /// Name and text of the programs in `examples/receivers`.
        pub(super) static RECEIVERS: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../../examples/receivers/", $name)),
        )),*];
    };
}

receivers! { "receiver.php" "receiver.py" "receiver.mjs" "receiver.go" "receiver.rs" }
