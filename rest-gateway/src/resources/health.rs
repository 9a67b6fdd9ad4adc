//! `/healthz` and `/readyz`: health checks for orchestrators and load balancers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use process::health::Readiness as _;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::{
    core_pool::CallOptions,
    error::{BUSY_RETRY_SECONDS, Error},
    representation::error_codes as codes,
    request::{self, HandlerResult, Request},
    resources::tokens::public_keys,
};

/// Shorter than the usual timeout of a health check, often one second.
const READY_TIMEOUT: Duration = Duration::from_millis(800);

/// `GET /healthz`: succeeds while the process runs.
pub(crate) fn live() -> Response<Bytes> {
    text(StatusCode::OK, "ok")
}

/// `GET /readyz`: succeeds while a core with its database is reachable and ready and the gateway is
/// not draining.
pub(crate) async fn ready(request: Request) -> HandlerResult {
    if !request.gateway.draining.is_cancelled() {
        call_core(&request).await?;
    }

    Ok(match request.gateway.check().await {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &reason),
    })
}

/// Calls a method that requires no token, and for which core reads its keys from the database.
async fn call_core(request: &Request) -> Result<(), Error> {
    let options = CallOptions {
        deadline: request.deadline.min(Instant::now() + READY_TIMEOUT),
        ..request.anonymous_call_options()
    };
    let deadline = options.deadline;
    let called = public_keys::read(request, options);
    match timeout_at(deadline, called).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if *error.kind != codes::DEADLINE_EXCEEDED => Err(error),
        // A timeout counts as not ready.
        Ok(Err(_)) | Err(_) => {
            let status = Status::unavailable("no core was ready in time");
            Err(Error::unavailable(status, BUSY_RETRY_SECONDS))
        }
    }
}

fn text(status: StatusCode, body: &str) -> Response<Bytes> {
    let mut response = request::response("text/plain; charset=utf-8", format!("{body}\n"));
    *response.status_mut() = status;
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
