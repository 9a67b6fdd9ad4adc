//! The layers every request passes, outermost first.
//!
//! The body's size is limited where bodies are read (`body`): only there is it known whether a
//! request's body matters. How much is worked on at once is limited after that (`routes`): a
//! client that is slow to send must not take the place of one that has sent.

use std::convert::Infallible;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Request, Response,
    header::{AUTHORIZATION, LINK},
};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use tower::{
    BoxError, ServiceBuilder, ServiceExt,
    timeout::TimeoutLayer,
    util::{BoxCloneSyncService, MapRequestLayer},
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer},
    sensitive_headers::SetSensitiveRequestHeadersLayer,
    set_header::SetResponseHeaderLayer,
    trace::TraceLayer,
};
use uuid::Uuid;

use crate::{
    compression, config::Config, cors, head, rate_limits, rescue, routes::Routes,
    vocabulary::DOCUMENTATION,
};

/// Of every request and every answer.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_REQUEST_ID: usize = 128;

/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The whole gateway as one service: it never fails, it answers.
pub(crate) type Stack = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

pub(crate) fn new(config: &Config, routes: Routes) -> Stack {
    let public_url = routes.public_url();
    let layers = ServiceBuilder::new()
        // Outermost, so that everything inside and every answer has an id; a client's own is
        // kept if it can be repeated safely.
        .layer(MapRequestLayer::new(drop_malformed_request_id::<Incoming>))
        .layer(SetRequestIdLayer::new(REQUEST_ID.clone(), TimeOrderedId))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID.clone()))
        // On every answer, so that a program that knows any address finds the documentation.
        .layer(SetResponseHeaderLayer::appending(
            LINK,
            link_to_documentation(&public_url),
        ))
        // Before anything that logs.
        .layer(SetSensitiveRequestHeadersLayer::new([AUTHORIZATION]))
        // Sees each answer as the client gets it. Failures are logged where they are handled,
        // by the rescue.
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(request_span::<Incoming>)
                .on_failure(()),
        )
        // Outside of the rescue: a page may read its errors too.
        .layer(cors::layer())
        // Outside of the compression: see there.
        .layer(head::layer())
        // Of what is worth it and holds no secret.
        .layer(compression::layer())
        // Outside the rescue: who is refused is told how it stands too.
        .layer(rate_limits::layer())
        // Turns every failure of what follows into an answer, in the one form of `problem`.
        .layer(rescue::layer(public_url))
        // A panic ends one request, not the connection with its neighbours.
        .layer(CatchPanicLayer::custom(rescue::panicked))
        // Innermost: covers the handler's whole work, the calls to core included.
        .layer(TimeoutLayer::new(config.request_timeout));
    let service = layers.service(routes);
    BoxCloneSyncService::new(service.map_response(|answer| answer.map(BodyExt::boxed_unsync)))
}

/// As Hydra's clients look for it; none if the public address cannot be in a header.
fn link_to_documentation(public_url: &str) -> Option<HeaderValue> {
    let link = format!(
        "<{public_url}{DOCUMENTATION}>; rel=\"http://www.w3.org/ns/hydra/core#apiDocumentation\""
    );
    HeaderValue::from_str(&link).ok()
}

fn drop_malformed_request_id<B>(mut request: Request<B>) -> Request<B> {
    let mut values = request.headers().get_all(&REQUEST_ID).iter();
    let well_formed = match (values.next(), values.next()) {
        (None, _) => return request,
        (Some(value), None) => is_request_id(value.as_bytes()),
        (Some(_), Some(_)) => false,
    };
    if !well_formed {
        request.headers_mut().remove(&REQUEST_ID);
    }
    request
}

/// What UUIDs, ULIDs, trace ids and Base64 are written with, and nothing that could break a
/// log line or a header.
fn is_request_id(value: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&value.len())
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

#[derive(Clone, Copy)]
struct TimeOrderedId;

impl MakeRequestId for TimeOrderedId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let id = Uuid::now_v7().hyphenated().to_string();
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

/// The path without the query: people put secrets there.
fn request_span<B>(request: &Request<B>) -> tracing::Span {
    let request_id = request
        .headers()
        .get(&REQUEST_ID)
        .and_then(|id| id.to_str().ok());
    tracing::info_span!(
        "request",
        http.method = %request.method(),
        http.path = request.uri().path(),
        request.id = request_id,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_short_and_harmless() {
        for right in [
            "a",
            "01932e5c-9f4a-7000-8000-00000000000a",
            "root=1-67:x/y+z=@~.",
        ] {
            assert!(is_request_id(right.as_bytes()), "{right}");
        }
        for wrong in ["", "a b", "a\"b", "a,b", "é", &"a".repeat(129)] {
            assert!(!is_request_id(wrong.as_bytes()), "{wrong}");
        }
    }
}
