//! Turns the errors and panics of the pipeline into responses.

use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::{
    error::Error,
    pipeline::Pipeline,
    rate_limits::LimitStatuses,
    representation::{
        error_codes as codes,
        media_type::MediaType,
        problem::{self, RequestContext},
    },
    request_id::REQUEST_ID,
};

/// Responds with the pipeline's response or error. Both carry the rate limits that count the request.
pub(crate) async fn respond(
    pipeline: Arc<Pipeline>,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let context = context_of(&request);
    let limit_statuses = LimitStatuses::default();
    request.extensions_mut().insert(limit_statuses.clone());
    let public_url = &pipeline.gateway.public_url;
    let result = pipeline.respond(request);
    let mut response = response_of(result, &context, public_url).await;
    limit_statuses.write(response.headers_mut());
    Ok(response)
}

/// The response, or that of the error. A panic ends one request, not the other requests of its
/// connection.
async fn response_of(
    result: impl Future<Output = Result<Response<Full<Bytes>>, Error>>,
    context: &RequestContext,
    public_url: &str,
) -> Response<Full<Bytes>> {
    let result = AssertUnwindSafe(result).catch_unwind().await;
    let result = result.unwrap_or_else(|panic| {
        log_panic(&*panic);
        Err(Error::panic())
    });
    result.unwrap_or_else(|error| {
        log(&error);
        problem::render(&error, context, public_url)
    })
}

fn log_panic(panic: &(dyn Any + Send)) {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message, "handler panicked");
}

fn context_of(request: &Request<Incoming>) -> RequestContext {
    let request_id = request
        .headers()
        .get(&REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    RequestContext {
        media_type: MediaType::of_error(request.headers()),
        request_id,
    }
}

/// Logs an error, at the level that fits its cause. Errors are logged only here.
fn log(error: &Error) {
    let source = error.source.as_deref();
    if *error.kind == codes::INTERNAL {
        if let Some(source) = source {
            let source: &(dyn std::error::Error + 'static) = source;
            tracing::error!(error = source, "request failed");
        }
    } else if let Some(source) = source {
        tracing::warn!(error = %source, "core unavailable");
    } else if [codes::DEADLINE_EXCEEDED.code, codes::OVERLOADED.code].contains(&error.kind.code) {
        tracing::warn!(%error, "request not served");
    } else {
        tracing::debug!(%error, "request rejected");
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_without_its_message() {
        let panicking = async { panic!("a secret") };
        let context = RequestContext {
            media_type: MediaType::JsonLd,
            request_id: "7".to_owned(),
        };

        let response = response_of(panicking, &context, "https://delivery.example").await;

        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
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
