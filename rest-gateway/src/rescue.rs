//! The layer that turns failures into answers: the handlers', the other layers', and panics.

use std::{
    any::Any,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response, header::ACCEPT};
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Layer, Service, layer::layer_fn, timeout};

use crate::{
    error::Error,
    problem,
    stack::{Body, REQUEST_ID},
};

/// Marks the answer of a panic, to be rendered like any other failure.
#[derive(Clone, Copy)]
struct Panicked;

/// What to answer with when a handler panicked; the rescue fills it.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer that catches it gives it away"
)]
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Response<Full<Bytes>> {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = message, "a handler panicked");
    let mut response = Response::new(Full::default());
    response.extensions_mut().insert(Panicked);
    response
}

pub(crate) fn layer<S>(public_url: Arc<str>) -> impl Layer<S, Service = Rescue<S>> + Clone {
    layer_fn(move |inner| Rescue {
        inner,
        public_url: Arc::clone(&public_url),
    })
}

#[derive(Clone)]
pub(crate) struct Rescue<S> {
    inner: S,
    public_url: Arc<str>,
}

impl<S, B, R> Service<Request<B>> for Rescue<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    S::Future: Send + 'static,
    R: hyper::body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // What is inside sheds load rather than being unready or failing.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let asked = Asked::of(&request);
        let public_url = Arc::clone(&self.public_url);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let result = match answer.await {
                Ok(response) if response.extensions().get::<Panicked>().is_some() => {
                    Err(Error::Panic)
                }
                Ok(response) => Ok(response.map(BodyExt::boxed_unsync)),
                Err(error) => Err(of_layer(error)),
            };
            Ok(result.unwrap_or_else(|error| {
                log(&error);
                problem::render(&error, &asked, &public_url)
            }))
        })
    }
}

/// What of a request matters to how its failure is told.
pub(crate) struct Asked {
    pub(crate) accept: HeaderMap,
    pub(crate) request_id: String,
}

impl Asked {
    fn of<B>(request: &Request<B>) -> Self {
        let mut accept = HeaderMap::new();
        for value in request.headers().get_all(ACCEPT) {
            accept.append(ACCEPT, value.clone());
        }
        let request_id = request
            .headers()
            .get(&REQUEST_ID)
            .and_then(|id| id.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        Self { accept, request_id }
    }
}

fn of_layer(error: BoxError) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    if error.is::<timeout::error::Elapsed>() {
        Error::Timeout
    } else {
        Error::Internal(error)
    }
}

/// A failure is logged once, here: with its sources when it is ours to mend.
fn log(error: &Error) {
    match error {
        Error::Internal(source) => {
            let source: &(dyn std::error::Error + 'static) = source.as_ref();
            tracing::error!(error = source, "a request failed");
        }
        Error::Unavailable { status, .. } => {
            tracing::warn!(error = %status, "core could not be reached");
        }
        Error::Timeout | Error::Overloaded { .. } => {
            tracing::warn!(%error, "a request was given up");
        }
        Error::Panic => {}
        _ => tracing::debug!(%error, "a request was refused"),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};
    use tower::{ServiceBuilder, ServiceExt, service_fn};
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_that_says_nothing_of_it() {
        let service = ServiceBuilder::new()
            .layer(layer("https://delivery.example".into()))
            .layer(CatchPanicLayer::custom(panicked))
            .service(service_fn(async |_: Request<()>| match "a secret" {
                "" => Ok::<_, BoxError>(Response::new(Full::<Bytes>::default())),
                secret => panic!("{secret}"),
            }));
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
