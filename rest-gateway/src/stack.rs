//! The tower layers of every request, outermost first.
//!
//! Two limits are not layers. `body` limits the size of bodies, and discards a body that its request
//! does not need. `pipeline` limits concurrency after the body is read: a slow client must not occupy
//! the slot of a request that has arrived.

use std::{convert::Infallible, sync::Arc};

use http::{
    HeaderValue, Request, Response,
    header::{AUTHORIZATION, LINK},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use process::middleware::middleware;
use tower::{
    ServiceBuilder, ServiceExt,
    timeout::TimeoutLayer,
    util::{BoxCloneSyncService, MapRequestLayer},
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    request_id::{PropagateRequestIdLayer, SetRequestIdLayer},
    sensitive_headers::SetSensitiveRequestHeadersLayer,
    set_header::SetResponseHeaderLayer,
};

use crate::{
    api_description::DOCUMENTATION,
    body::ResponseBody,
    compression,
    config::Config,
    cors, error_response, head, observer,
    pipeline::Pipeline,
    rate_limits,
    request_id::{self, REQUEST_ID, TimeOrderedId},
};

/// The whole gateway as one infallible service.
pub(crate) type Stack = BoxCloneSyncService<Request<Incoming>, Response<ResponseBody>, Infallible>;

pub(crate) fn new(config: &Config, pipeline: Arc<Pipeline>) -> Stack {
    let observed = Arc::clone(&pipeline);
    let public_url = Arc::clone(&pipeline.gateway.public_url);
    let layers = ServiceBuilder::new()
        // Outermost, so that all logs and responses carry an id.
        .layer(MapRequestLayer::new(
            request_id::remove_malformed::<Incoming>,
        ))
        .layer(SetRequestIdLayer::new(REQUEST_ID.clone(), TimeOrderedId))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID.clone()))
        // On every response: a client that knows any URL finds the documentation.
        .layer(SetResponseHeaderLayer::appending(
            LINK,
            link_to_documentation(&public_url),
        ))
        // Before any layer that logs.
        .layer(SetSensitiveRequestHeadersLayer::new([AUTHORIZATION]))
        // Logs each response as the client receives it. `error_response` logs failures.
        .layer(middleware(move |request, inner| {
            observer::observe(request, inner, Arc::clone(&observed))
        }))
        // Outside `error_response`: web pages may read errors too.
        .layer(middleware(cors::add_headers))
        // Outside the compression: a `HEAD` response has the headers of the compressed `GET`.
        .layer(middleware(head::respond))
        .layer(MapRequestLayer::new(
            compression::accept_gzip_or_nothing::<Incoming>,
        ))
        .layer(compression::layer())
        // Outside `error_response`: a rate-limited response carries the limits too.
        .layer(middleware(rate_limits::add_headers))
        // Turns every failure of the inner layers into a response rendered by `problem`.
        .layer(middleware(move |request, inner| {
            error_response::respond(request, inner, Arc::clone(&public_url))
        }))
        // A panic ends one request, not the other requests of its connection.
        .layer(CatchPanicLayer::custom(error_response::panic_response))
        // Innermost: covers the handler, its calls to core included.
        .layer(TimeoutLayer::new(config.request_timeout));
    let service = layers.service_fn(move |request| Arc::clone(&pipeline).respond(request));
    BoxCloneSyncService::new(service.map_response(|response| response.map(BodyExt::boxed_unsync)))
}

/// The link that Hydra clients look for; none if the public URL is not a valid header value.
fn link_to_documentation(public_url: &str) -> Option<HeaderValue> {
    let link = format!(
        "<{public_url}{DOCUMENTATION}>; rel=\"http://www.w3.org/ns/hydra/core#apiDocumentation\""
    );
    HeaderValue::from_str(&link).ok()
}
