//! Style sheets and scripts of pages.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};

/// Of a response whose URL has the version of its body.
pub const CACHE_OF_VERSION: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file that pages load.
#[derive(Debug)]
pub struct File {
    pub name: &'static str,
    pub media_type: &'static str,
    pub content: Bytes,
    /// A digest of the content, the query of the file's URL.
    pub version: String,
}

impl File {
    pub fn new(name: &'static str, media_type: &'static str, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        let digest = Sha256::digest(&content);
        Self {
            name,
            media_type,
            content,
            version: BASE64_URL_SAFE_NO_PAD.encode(&digest[..12]),
        }
    }

    /// Its URL, relative to its folder: another content has another.
    pub fn url(&self) -> String {
        format!("{}?{}", self.name, self.version)
    }
}
