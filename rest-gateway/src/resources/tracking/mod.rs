//! `/t/{trackingToken}`: where a parcel is, as a page for its recipient in the language of the browser. `/t/files`
//! has its style sheet, and the script that looks for a change; `/t/{trackingToken}/files/logo` the shop's logo.

mod page;

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use proto::{
    GetTrackingLogoRequest, GetTrackingRequest, TrackedDelivery, TrackingLogo,
    tracking_client::TrackingClient,
};
use sha2::{Digest as _, Sha256};

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        language::{self, AcceptLanguage},
        media_type,
        response_body::FixedBody,
    },
    request::{self, HandlerResult, Request},
    resources::docs_page,
};

/// The beginning of the paths.
pub(crate) const PAGES: &str = "/t/";

/// Longer texts, which are no tokens, are not sent to core.
const MAX_TOKEN: usize = 64;

/// Not in `robots.txt`, which would hide that the page is not to be listed.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
const NOT_LISTED: HeaderValue = HeaderValue::from_static("noindex");

/// With an `ETag`: a page that looks for a change gets 304 without one.
const CACHE_OF_PAGE: HeaderValue = HeaderValue::from_static("private, no-cache");

/// Of a file at the URL with its version.
const CACHE_OF_VERSION: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");

struct File {
    name: &'static str,
    media_type: &'static str,
    content: FixedBody,
    /// A digest of the content.
    version: String,
}

impl File {
    fn new(name: &'static str, media_type: &'static str, content: &'static str) -> Self {
        let digest = Sha256::digest(content);
        Self {
            name,
            media_type,
            content: FixedBody::new(content),
            version: BASE64_URL_SAFE_NO_PAD.encode(&digest[..12]),
        }
    }

    /// As the page refers to it.
    fn url(&self) -> String {
        format!("files/{}?{}", self.name, self.version)
    }
}

static STYLE: LazyLock<File> = LazyLock::new(|| {
    let style = include_str!("page.css");
    File::new("page.css", "text/css; charset=utf-8", style)
});

static SCRIPT: LazyLock<File> = LazyLock::new(|| {
    let script = include_str!("page.js");
    File::new("page.js", "text/javascript; charset=utf-8", script)
});

/// `GET /t/{trackingToken}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let language = AcceptLanguage::of(request.headers()).of_messages();
    let accepts_html = media_type::names_html(request.headers());
    let is_explained = |status| [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&status);
    let (status, html) = match find(&request).await {
        Ok(tracked) => (
            StatusCode::OK,
            page::of_delivery(&tracked, &request.parameter, language)?,
        ),
        Err(error) if accepts_html && is_explained(error.kind.status) => {
            let status = error.kind.status;
            (status, page::without_delivery(status, language)?)
        }
        Err(error) => return Err(error),
    };

    let mut response = docs_page::page(Response::new(html.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(ROBOTS, NOT_LISTED);
    if status == StatusCode::OK {
        headers.insert(CACHE_CONTROL, CACHE_OF_PAGE);
    }
    Ok(language::declare(response, Some(language)))
}

fn token(request: &Request) -> Result<String, Error> {
    if request.parameter.len() > MAX_TOKEN {
        return Err(Error::no_such_path());
    }
    Ok(request.parameter.clone())
}

async fn find(request: &Request) -> Result<TrackedDelivery, Error> {
    let token = token(request)?;
    let get = rpc!(TrackingClient.get_tracking);
    request
        .call_without_token(GetTrackingRequest { token }, get)
        .await
}

/// `GET /t/{trackingToken}/files/logo`
pub(crate) async fn get_logo(request: Request) -> HandlerResult {
    let token = token(&request)?;
    let get = rpc!(TrackingClient.get_tracking_logo);
    let logo: TrackingLogo = request
        .call_without_token(GetTrackingLogoRequest { token }, get)
        .await?;
    let media_type = match &*logo.media_type {
        "image/webp" => "image/webp",
        _ => "image/png",
    };
    let mut response = request::with_content_type(media_type, Response::new(logo.content.into()));
    keep_version(&request, &logo.version, &mut response);
    Ok(response)
}

/// Lets a response be kept if its URL has its version.
fn keep_version(request: &Request, version: &str, response: &mut Response<Bytes>) {
    if request.parts.uri.query() == Some(version) {
        response
            .headers_mut()
            .insert(CACHE_CONTROL, CACHE_OF_VERSION);
    }
}

/// `GET /t/files/{asset}`
pub(crate) fn get_file(request: &Request) -> HandlerResult {
    let mut files = [&STYLE, &SCRIPT].into_iter();
    let found = files.find(|file| file.name == request.parameter);
    let file = found.ok_or_else(Error::no_such_path)?;
    let mut response = request::with_content_type(file.media_type, file.content.response());
    keep_version(request, &file.version, &mut response);
    Ok(response)
}
