//! `/healthz` and `/readyz`, for whoever keeps the gateway running.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response,
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
    Ok(fine())
}

/// `GET /readyz`: so does a core, and its database.
pub(crate) async fn ready(gateway: Arc<Gateway>, request: Request) -> Answer {
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

    Ok(fine())
}

fn fine() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"ok\n"));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
