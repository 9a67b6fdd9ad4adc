//! Authenticates calls before their message is read, so that only known callers make core read one.

use std::sync::Arc;

use domain::api_client::Scope;
use http::{Request, Response};
use tonic::{Status, body::Body, metadata::MetadataMap};
use tower::{Service, ServiceExt as _};

use super::{authenticator::Authenticator, caller::Caller};
use crate::{error::Error, rate_limits::RateLimits};

/// The path prefix of the services that need a caller.
const PREFIX: &str = "/delivery.v1.";

/// Clients without a token use this one.
const TOKENS: &str = "/delivery.v1.Tokens/";

/// Authenticates calls.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) rate_limits: Arc<RateLimits>,
}

impl Authentication {
    /// Whether a path needs no caller.
    pub(crate) fn is_public(path: &str) -> bool {
        !path.starts_with(PREFIX) || path.starts_with(TOKENS)
    }

    /// Counts a call of a caller, unless it is a dispatcher: how often it reports is up to core.
    fn count(&self, caller: Arc<Caller>) -> Result<Arc<Caller>, Error> {
        if !caller.has(Scope::Notifications) {
            self.rate_limits.check_client(caller.id)?;
        }
        Ok(caller)
    }

    /// Middleware: adds the [`Caller`](super::caller::Caller) to the extensions of a
    /// call.
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
            let caller = self.authenticator.authenticate(&metadata).await;
            match caller.and_then(|caller| self.count(caller)) {
                Ok(caller) => {
                    let client = tracing::field::display(caller.id);
                    tracing::Span::current().record("client.id", client);
                    request.extensions_mut().insert(caller)
                }
                Err(error) => return Ok(Status::from(error).into_http()),
            };
            *request.headers_mut() = metadata.into_headers();
        }
        inner.oneshot(request).await
    }
}
