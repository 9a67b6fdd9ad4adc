//! Authenticates calls before their message is read, so that only known callers make core read one.

use std::sync::Arc;

use http::{Request, Response};
use tonic::{Status, body::Body, metadata::MetadataMap};
use tower::{Service, ServiceExt as _};

use super::authenticator::Authenticator;

/// The path prefix of the services that need a caller.
const PREFIX: &str = "/delivery.v1.";

/// Clients without a token use this one.
const TOKENS: &str = "/delivery.v1.Tokens/";

/// Authenticates calls.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(super) authenticator: Arc<Authenticator>,
}

impl Authentication {
    /// Whether a path needs no caller.
    pub(crate) fn is_public(path: &str) -> bool {
        !path.starts_with(PREFIX) || path.starts_with(TOKENS)
    }

    /// Middleware: adds the [`Caller`](super::caller::Caller) to the extensions of a call.
    pub(crate) async fn authenticate<S>(
        self,
        mut request: Request<Body>,
        inner: S,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        if !Self::is_public(request.uri().path()) {
            let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
            match self.authenticator.authenticate(&metadata).await {
                Ok(caller) => request.extensions_mut().insert(caller),
                Err(error) => return Ok(Status::from(error).into_http()),
            };
            *request.headers_mut() = metadata.into_headers();
        }
        inner.oneshot(request).await
    }
}
