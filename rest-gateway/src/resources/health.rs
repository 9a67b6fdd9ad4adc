//! `/healthz` and `/readyz`, for whoever keeps the gateway running.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use proto::{ListPublicKeysRequest, tokens_client::TokensClient};
use tokio::time::Instant;

use crate::{
    core::{Call, Repeat},
    error::Error,
    request::Request,
    routes::{Answer, Gateway},
};

/// Whoever asks has more to ask than this.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /healthz`: the process answers.
pub(crate) async fn live(_: Arc<Gateway>, _: Request) -> Answer {
    Ok(text(StatusCode::OK, "ok\n"))
}

/// `GET /readyz`: so does a core, and its database, and the process has not been told to end.
pub(crate) async fn ready(gateway: Arc<Gateway>, request: Request) -> Answer {
    if gateway.draining.is_cancelled() {
        return Ok(text(
            StatusCode::SERVICE_UNAVAILABLE,
            "this gateway is ending\n",
        ));
    }
    let call = Call {
        deadline: request.deadline.min(Instant::now() + READY_TIMEOUT),
        ..request.anonymous_call()
    };
    let message = ListPublicKeysRequest {};
    gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            TokensClient::new(core).list_public_keys(message).await
        })
        .await
        .map_err(|error| match error {
            // Not in time is not ready, whatever the reason.
            Error::Timeout => Error::not_ready(),
            other => other,
        })?;

    Ok(text(StatusCode::OK, "ok\n"))
}

fn text(status: StatusCode, sentence: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(sentence.as_bytes()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
