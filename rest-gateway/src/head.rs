//! `HEAD`: the response to the same `GET`, without its body.

use bytes::Bytes;
use http::{Method, Request, Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tower::{BoxError, Service, ServiceExt as _};

use crate::body::ResponseBody;

/// Middleware: removes the body of a response to `HEAD`. Must be outside every layer that changes a
/// body, so that `Content-Length` is the same as for `GET`.
pub(crate) async fn respond<S, B, R>(
    request: Request<B>,
    inner: S,
) -> Result<Response<ResponseBody>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let is_head = request.method() == Method::HEAD;
    let response = inner.oneshot(request).await?;
    let response = response.map(|body| body.map_err(Into::into).boxed_unsync());
    Ok(if is_head {
        without_body(response)
    } else {
        response
    })
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
