//! `/healthz` and `/readyz`: health checks for orchestrators and load balancers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use proto::{ListPublicKeysRequest, tokens_client::TokensClient};
use tokio::time::Instant;

use crate::{
    core_pool::{CallOptions, Retry},
    error::Error,
    gateway::{Gateway, HandlerResult},
    request::Request,
};

/// Shorter than the usual timeout of a health check, often one second.
const READY_TIMEOUT: Duration = Duration::from_millis(800);

/// `GET /healthz`: succeeds while the process runs.
pub(crate) async fn live(_: Arc<Gateway>, _: Request) -> HandlerResult {
    Ok(text(StatusCode::OK, "ok\n"))
}

/// `GET /readyz`: succeeds while a core with its database is reachable and ready and the gateway is
/// not draining.
pub(crate) async fn ready(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    if gateway.draining.is_cancelled() {
        return Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "this gateway is shutting down\n",
        ));
    }
    let options = CallOptions {
        deadline: request.deadline.min(Instant::now() + READY_TIMEOUT),
        ..request.anonymous_call_options()
    };
    // Requires no token, and reads the keys from the database.
    let message = ListPublicKeysRequest {};
    gateway
        .core
        .call(options, Retry::Safe, message, |core, message| async {
            TokensClient::new(core).list_public_keys(message).await
        })
        .await
        .map_err(|error| match error {
            // A timeout counts as not ready.
            Error::DeadlineExceeded => Error::not_ready(),
            other => other,
        })?;
    if !gateway.core.is_any_up() {
        return Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "no core is ready: the cores' /readyz and logs say why\n",
        ));
    }

    Ok(text(StatusCode::OK, "ok\n"))
}

fn text(status: StatusCode, body: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
