//! The middleware that turns errors of handlers and of other layers, and panics, into responses.

use std::{any::Any, convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Service, ServiceExt as _, timeout};

use crate::{
    body::ResponseBody,
    error::Error,
    error_codes as codes,
    media_type::MediaType,
    problem::{self, RequestContext},
    request_id::REQUEST_ID,
};

/// Marks the response of a panic, to be rendered as an error.
#[derive(Clone, Copy)]
struct Panicked;

/// Logs a panic. The response is empty; [`respond`] renders its body.
#[expect(
    clippy::needless_pass_by_value,
    reason = "`CatchPanicLayer` passes the panic by value"
)]
pub(crate) fn panic_response(panic: Box<dyn Any + Send>) -> Response<Full<Bytes>> {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message, "handler panicked");
    let mut response = Response::new(Full::default());
    response.extensions_mut().insert(Panicked);
    response
}

/// Middleware: responds to errors and panics.
pub(crate) async fn respond<S, B, R>(
    request: Request<B>,
    inner: S,
    public_url: Arc<str>,
) -> Result<Response<ResponseBody>, Infallible>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    R: hyper::body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    let context = context_of(&request);
    let result = match inner.oneshot(request).await {
        Ok(response) if response.extensions().get::<Panicked>().is_some() => Err(Error::panic()),
        Ok(response) => Ok(response.map(BodyExt::boxed_unsync)),
        Err(error) => Err(from_layer(error)),
    };
    Ok(result.unwrap_or_else(|error| {
        log(&error);
        problem::render(&error, &context, &public_url)
    }))
}

fn context_of<B>(request: &Request<B>) -> RequestContext {
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

fn from_layer(error: BoxError) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    if error.is::<timeout::error::Elapsed>() {
        Error::deadline_exceeded()
    } else {
        Error::internal(error)
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
    use process::middleware::middleware;
    use serde_json::{Value, json};
    use tower::{ServiceBuilder, service_fn};
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_without_its_message() {
        let service = ServiceBuilder::new()
            .layer(middleware(|request, inner| {
                respond(request, inner, "https://delivery.example".into())
            }))
            .layer(CatchPanicLayer::custom(panic_response))
            .service(service_fn(
                async |_: Request<()>| -> Result<Response<Full<Bytes>>, BoxError> {
                    panic!("a secret")
                },
            ));
        let request = Request::get("/")
            .header("x-request-id", "7")
            .body(())
            .unwrap();

        let response = service.oneshot(request).await.unwrap();

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
