//! `/t/{trackingToken}`: where a parcel is, as a page for its recipient in the language of the browser. `/t/files`
//! has its style sheet, and the script that looks for a change; `/t/{trackingToken}/files/logo` the shop's logo.

mod page;

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use proto::{
    GetTrackingLogoRequest, GetTrackingRequest, TrackedDelivery, TrackingLogo,
    tracking_client::TrackingClient,
};

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        language::{self, AcceptLanguage},
        media_type,
    },
    request::{self, HandlerResult, Request},
    resources::page_files::{self, PageFile},
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

static STYLE: LazyLock<PageFile> = LazyLock::new(|| {
    let style = [pages::COLOURS, include_str!("page.css")].concat();
    PageFile::new("page.css", "text/css; charset=utf-8", style)
});

static SCRIPT: LazyLock<PageFile> = LazyLock::new(|| {
    let script = include_str!("page.js");
    PageFile::new("page.js", "text/javascript; charset=utf-8", script)
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

    let mut response = page_files::page(Response::new(html.into()));
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
    page_files::keep_version(&request, &logo.version, &mut response);
    Ok(response)
}

/// `GET /t/files/{asset}`
pub(crate) fn get_file(request: &Request) -> HandlerResult {
    page_files::get([&*STYLE, &*SCRIPT], request)
}
