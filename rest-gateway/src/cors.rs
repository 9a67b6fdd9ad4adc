//! What browsers let pages of other origins do (the Fetch standard's CORS protocol): everything
//! under `/api`, with a token they have. Not get one: an API secret has no place in a page.

use futures_util::future::{BoxFuture, FutureExt};
use http::{
    HeaderMap, HeaderValue, Request, Response,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    },
};
use tower::{Layer, Service, layer::layer_fn};

/// Requests' headers that a page may set.
const TAKEN: HeaderValue = HeaderValue::from_static(
    "accept, accept-language, authorization, content-type, idempotency-key, if-none-match, \
     x-request-id",
);
/// Answers' headers that a page may read.
const TOLD: HeaderValue = HeaderValue::from_static(
    "allow, content-language, etag, idempotent-replayed, link, location, ratelimit, \
     ratelimit-policy, retry-after, www-authenticate, x-request-id",
);
/// Two hours, the most that browsers take.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// No cookie and no session of a browser's means anything here, so any origin may ask.
const ANY: HeaderValue = HeaderValue::from_static("*");

fn is_shared(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether the request is a browser's question whether a page may make another.
pub(crate) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers that question for a path with these methods.
pub(crate) fn preflight(path: &str, allow: &HeaderValue, headers: &mut HeaderMap) {
    if is_shared(path) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, TAKEN);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
}

/// Lets pages of any origin read the answers.
pub(crate) fn layer<S>() -> impl Layer<S, Service = Shared<S>> + Clone {
    layer_fn(Shared)
}

#[derive(Clone)]
pub(crate) struct Shared<S>(S);

impl<S, B, R> Service<Request<B>> for Shared<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_shared = is_shared(request.uri().path());
        let answer = self.0.call(request);
        async move {
            let mut answer = answer.await?;
            if is_shared {
                let headers = answer.headers_mut();
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, TOLD);
            }
            Ok(answer)
        }
        .boxed()
    }
}
