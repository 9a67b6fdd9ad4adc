//! The files below `/api/docs/`: style sheets, scripts, guides and the receivers that they show.

use std::sync::LazyLock;

use bytes::Bytes;

use super::{
    guides,
    texts::{GUIDES, RECEIVERS, SCRIPTS, STYLES},
};

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
    let guides = GUIDES
        .iter()
        .map(|(name, text)| (*name, HTML, Bytes::from(guides::to_html(name, text))));
    texts.chain(guides).collect()
});
