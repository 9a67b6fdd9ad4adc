//! Authenticates calls before their message is read, so that only known callers make core read one.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use tonic::{Status, body::Body, metadata::MetadataMap};
use tower::{Layer, Service};

use super::authenticator::Authenticator;

/// The path prefix of the services that need a caller.
const PREFIX: &str = "/delivery.v1.";

/// Clients without a token use this one.
const TOKENS: &str = "/delivery.v1.Tokens/";

/// A layer that authenticates calls and adds the [`Caller`](super::caller::Caller) to their
/// extensions.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(super) authenticator: Arc<Authenticator>,
}

impl Authentication {
    /// Whether a path needs no caller.
    pub(crate) fn is_public(path: &str) -> bool {
        !path.starts_with(PREFIX) || path.starts_with(TOKENS)
    }
}

impl<S> Layer<S> for Authentication {
    type Service = Authenticated<S>;

    fn layer(&self, inner: S) -> Authenticated<S> {
        Authenticated {
            inner,
            authenticator: Arc::clone(&self.authenticator),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Authenticated<S> {
    inner: S,
    authenticator: Arc<Authenticator>,
}

impl<S> Service<Request<Body>> for Authenticated<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if Authentication::is_public(request.uri().path()) {
            return Box::pin(self.inner.call(request));
        }
        let authenticator = Arc::clone(&self.authenticator);
        // The clone may not be ready; this one is.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
            match authenticator.authenticate(&metadata).await {
                Ok(caller) => {
                    *request.headers_mut() = metadata.into_headers();
                    request.extensions_mut().insert(caller);
                    inner.call(request).await
                }
                Err(error) => Ok(Status::from(error).into_http()),
            }
        })
    }
}
