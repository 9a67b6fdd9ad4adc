//! `HEAD`: the answer to the same `GET`, without its body.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{Method, Request, Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tower::{BoxError, Layer, Service, layer::layer_fn};

use crate::stack::Body;

/// Stands outside of whatever changes a body: what is left out is what would have been sent.
pub(crate) fn layer<S>() -> impl Layer<S, Service = Head<S>> + Clone {
    layer_fn(Head)
}

#[derive(Clone)]
pub(crate) struct Head<S>(S);

impl<S, B, R> Service<Request<B>> for Head<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    R: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_head = request.method() == Method::HEAD;
        let answer = self.0.call(request);
        async move {
            let answer = answer
                .await?
                .map(|body| body.map_err(Into::into).boxed_unsync());
            Ok(if is_head {
                without_body(answer)
            } else {
                answer
            })
        }
        .boxed()
    }
}

/// How long the body would be is told if that is known.
fn without_body(mut answer: Response<Body>) -> Response<Body> {
    let bodiless = answer.status().is_informational()
        || answer.status() == http::StatusCode::NO_CONTENT
        || answer.status() == http::StatusCode::NOT_MODIFIED;
    if let Some(length) = answer.body().size_hint().exact()
        && !bodiless
    {
        answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    answer.map(|_| Body::default())
}
