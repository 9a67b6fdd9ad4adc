//! `HEAD`: the response to the same `GET`, without its body.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{Method, Request, Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tower::{BoxError, Layer, Service, layer::layer_fn};

use crate::body::ResponseBody;

/// Must be outside every layer that changes a body, so that `Content-Length` is the same as for
/// `GET`.
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
    type Response = Response<ResponseBody>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, S::Error>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_head = request.method() == Method::HEAD;
        let response = self.0.call(request);
        async move {
            let response = response
                .await?
                .map(|body| body.map_err(Into::into).boxed_unsync());
            Ok(if is_head {
                without_body(response)
            } else {
                response
            })
        }
        .boxed()
    }
}

/// Removes the body; `Content-Length` is set if the length is known.
fn without_body(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let never_has_body = response.status().is_informational()
        || response.status() == http::StatusCode::NO_CONTENT
        || response.status() == http::StatusCode::NOT_MODIFIED;
    if let Some(length) = response.body().size_hint().exact()
        && !never_has_body
    {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| ResponseBody::default())
}
