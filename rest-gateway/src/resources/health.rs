//! `/healthz` and `/readyz`: health checks for orchestrators and load balancers.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use process::health::Readiness as _;

use crate::request::{self, HandlerResult, Request};

/// `GET /healthz`: succeeds while the process runs.
pub(crate) fn live() -> Response<Bytes> {
    text(StatusCode::OK, "ok")
}

/// `GET /readyz`: succeeds while a core says that it is ready and the gateway is not draining. Calls no
/// core: the pool of cores checks them often, so that any number of unauthenticated clients may call this.
pub(crate) async fn ready(request: Request) -> HandlerResult {
    Ok(match request.gateway.check().await {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &reason),
    })
}

fn text(status: StatusCode, body: &str) -> Response<Bytes> {
    let mut response = request::response("text/plain; charset=utf-8", format!("{body}\n"));
    *response.status_mut() = status;
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
