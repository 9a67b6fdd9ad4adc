//! Pages and their files, as responses.

use bytes::Bytes;
use http::{Response, header::CACHE_CONTROL};
use pages::{CACHE_OF_VERSION, File, HTML};

use crate::{
    error::Error,
    representation::response_body::FixedBody,
    request::{self, HandlerResult, Request},
};

/// A file that is the same for every client.
pub(super) struct PageFile {
    pub(super) file: File,
    body: FixedBody,
}

impl PageFile {
    pub(super) fn new(
        name: &'static str,
        media_type: &'static str,
        text: impl Into<Bytes>,
    ) -> Self {
        let file = File::new(name, media_type, text);
        let body = FixedBody::new(file.content.clone());
        Self { file, body }
    }
}

/// The file that a request names.
pub(super) fn get<'f>(
    files: impl IntoIterator<Item = &'f PageFile>,
    request: &Request,
) -> HandlerResult {
    let mut files = files.into_iter();
    let found = files.find(|found| found.file.name == request.parameter);
    let PageFile { file, body } = found.ok_or_else(Error::no_such_path)?;
    let mut response = request::with_content_type(file.media_type, body.response());
    if file.media_type == HTML {
        pages::add_headers(response.headers_mut());
    }
    keep_version(request, &file.version, &mut response);
    Ok(response)
}

/// Lets a response be kept if its URL has its version.
pub(super) fn keep_version(request: &Request, version: &str, response: &mut Response<Bytes>) {
    if request.parts.uri.query() == Some(version) {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, CACHE_OF_VERSION);
    }
}

pub(super) fn page(mut html: Response<Bytes>) -> Response<Bytes> {
    pages::add_headers(html.headers_mut());
    html
}
