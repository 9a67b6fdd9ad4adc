//! What surrounds the pipeline for every request, outermost first.
//!
//! Two limits are elsewhere. `body` limits the size of bodies, and discards a body that its request
//! does not need. `pipeline` limits concurrency after the body is read: a slow client must not occupy
//! the slot of a request that has arrived.

use std::sync::Arc;

use admission::Peer;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, Entry, LINK},
};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::{
    body::ResponseBody,
    compression, cors, error_response, observer,
    pipeline::Pipeline,
    request_head,
    request_id::{self, REQUEST_ID},
};

/// Responds to a request.
pub(crate) async fn respond(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Response<ResponseBody> {
    // Before anything that logs.
    if let Entry::Occupied(mut authorization) = request.headers_mut().entry(AUTHORIZATION) {
        for value in authorization.iter_mut() {
            value.set_sensitive(true);
        }
    }
    let request_id = request_id::of(request.headers_mut());
    let peer = Peer(pipeline.gateway.rate_limits.client_address(&request));
    request.extensions_mut().insert(peer);
    let rejection = request_head::check(&request).err();
    if let Some(rejection) = rejection {
        request.extensions_mut().insert(rejection);
    }
    let is_http1 = request.version() < Version::HTTP_2;
    // What follows a rejected head may be part of its body.
    let is_last = rejection.is_some() || pipeline.gateway.draining.is_cancelled();

    let respond = |request| respond_as_requested(Arc::clone(&pipeline), request);
    let mut response = observer::observe(&pipeline, request, respond).await;

    let headers = response.headers_mut();
    // A client that knows any URL finds the documentation.
    headers.append(LINK, pipeline.documentation_link.clone());
    headers.insert(&REQUEST_ID, request_id);
    if is_http1 && is_last {
        // Asks the client to reconnect.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.extensions_mut().insert(peer);
    response
}

/// Responds in the form that the headers and the method of the request decide.
async fn respond_as_requested(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Response<ResponseBody> {
    let is_head = request.method() == Method::HEAD;
    let allows_any_origin = cors::allows_any_origin(request.uri().path());
    compression::accept_gzip_or_nothing(request.headers_mut());

    let compressed = compression::layer().layer(service_fn(move |request| {
        error_response::respond(Arc::clone(&pipeline), request)
    }));
    let Ok(response) = compressed.oneshot(request).await;
    let mut response = response.map(|body| body.map_err(Into::into).boxed_unsync());

    if is_head {
        response = without_body(response);
    }
    if allows_any_origin {
        cors::add_headers(response.headers_mut());
    }
    response
}

/// The response to `HEAD`: that to `GET` without its body. `Content-Length` is set if the length is
/// known.
fn without_body(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let never_has_body = response.status().is_informational()
        || response.status() == StatusCode::NO_CONTENT
        || response.status() == StatusCode::NOT_MODIFIED;
    if let Some(length) = response.body().size_hint().exact()
        && !never_has_body
    {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| ResponseBody::default())
}
