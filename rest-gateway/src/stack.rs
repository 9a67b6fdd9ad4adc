//! What surrounds the pipeline for every request, outermost first: its id and its client's address, the
//! check of its head, its measurement and log, CORS, `HEAD`, compression, entity tags, rendered errors and the
//! headers of rate limits.
//!
//! Two limits are elsewhere. `body` limits the size of bodies, and discards a body that its request
//! does not need. `pipeline` limits concurrency after the body is read: a slow client must not occupy
//! the slot of a request that has arrived.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{
        AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, Entry, LINK,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::{
    cors,
    error::Error,
    observer,
    pipeline::Pipeline,
    rate_limits::{ClientKey, LimitStatuses},
    representation::{problem, response_body},
    request_head,
    request_id::{self, REQUEST_ID},
};

/// No browser guesses another media type.
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// For a response that says nothing else. `response_body` says it of those that a client may keep.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-store");

/// Serves a request.
pub(crate) async fn serve(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
    client: IpAddr,
) -> Response<Full<Bytes>> {
    // Before anything that logs.
    if let Entry::Occupied(mut authorization) = request.headers_mut().entry(AUTHORIZATION) {
        for value in authorization.iter_mut() {
            value.set_sensitive(true);
        }
    }
    let request_id = request_id::of(request.headers_mut());
    request.extensions_mut().insert(ClientKey(client));
    let rejection = request_head::check(&request).err();
    if let Some(rejection) = rejection {
        request.extensions_mut().insert(rejection);
    }
    let is_http1 = request.version() < Version::HTTP_2;
    // What follows a rejected head may be part of its body.
    let is_last = rejection.is_some() || pipeline.gateway.draining.is_cancelled();

    let encode = |request| encode(Arc::clone(&pipeline), request);
    let mut response = observer::observe(&pipeline, request, encode).await;

    let headers = response.headers_mut();
    // A client that knows any URL finds the documentation.
    headers.append(LINK, pipeline.documentation_link.clone());
    headers.insert(&REQUEST_ID, request_id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    // What depends on the token belongs to its client alone, and an error to this moment.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, PRIVATE);
    }
    if is_http1 && is_last {
        // Asks the client to reconnect.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Tags and compresses the response and removes its body, as the headers and the method of the request decide.
async fn encode(pipeline: Arc<Pipeline>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let is_head = request.method() == Method::HEAD;
    let is_read = is_head || request.method() == Method::GET;
    // The pipeline takes the request.
    let headers = request.headers().clone();
    let allows_any_origin = cors::allows_any_origin(request.uri().path());

    let mut response = render(&pipeline, request, &headers).await;

    if is_read {
        response_body::tag(&headers, &mut response);
    }
    response_body::compress(&headers, &mut response).await;
    if is_head {
        response = without_body(response);
    }
    if allows_any_origin {
        cors::add_headers(response.headers_mut());
    }
    response.map(Full::new)
}

/// Renders the pipeline's response or error. Both carry the rate limits that count the request.
async fn render(
    pipeline: &Pipeline,
    mut request: Request<Incoming>,
    request_headers: &HeaderMap,
) -> Response<Bytes> {
    let limit_statuses = LimitStatuses::default();
    request.extensions_mut().insert(limit_statuses.clone());
    let public_url = &pipeline.gateway.public_url;
    let mut response = render_failure(pipeline.handle(request), request_headers, public_url).await;
    limit_statuses.write(response.headers_mut());
    response
}

/// The response, or that of the error. A panic ends one request, not the other requests of its
/// connection.
async fn render_failure(
    result: impl Future<Output = Result<Response<Bytes>, Error>>,
    request_headers: &HeaderMap,
    public_url: &str,
) -> Response<Bytes> {
    let caught = AssertUnwindSafe(result).catch_unwind().await;
    let result = caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let message = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(panic = message, "handler panicked");
        Err(Error::panic())
    });
    result.unwrap_or_else(|error| {
        problem::log(&error);
        problem::render(&error, request_headers, public_url)
    })
}

/// The response to `HEAD`: that to `GET` without its body.
fn without_body(mut response: Response<Bytes>) -> Response<Bytes> {
    let never_has_body = response.status().is_informational()
        || response.status() == StatusCode::NO_CONTENT
        || response.status() == StatusCode::NOT_MODIFIED;
    if !never_has_body {
        let length = response.body().len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| Bytes::new())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_without_its_message() {
        let panicking = async { panic!("a secret") };
        let headers = HeaderMap::from_iter([(REQUEST_ID.clone(), HeaderValue::from_static("7"))]);

        let response = render_failure(panicking, &headers, "https://delivery.example").await;

        assert_eq!(response.status(), 500);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(
            body,
            json!({
                "@context": "/api/contexts/Error",
                "@type": "hydra:Error",
                "hydra:title": "An error occurred",
                "hydra:description": "something went wrong on our side",
                "type": "https://delivery.example/errors/internal",
                "title": "Internal error",
                "status": 500,
                "detail": "something went wrong on our side",
                "code": "internal",
                "retryable": false,
                "requestId": "7",
            })
        );
    }
}
