//! Authenticates calls before their message is read, so that only known callers make core read one.

use std::sync::Arc;

use admission::Concurrency;
use domain::{api_client::Scope, id::ApiClientId};
use http::{Request, Response};
use tonic::{Status, body::Body, metadata::MetadataMap};
use tower::{Service, ServiceExt as _};

use super::{authenticator::Authenticator, caller::Caller};
use crate::{
    auth::{
        call_paths::{CallKind, is_public},
        rate_limits::RateLimits,
    },
    call_limits::hold,
    error::Error,
};

/// Limit of the calls of a platform's client in flight, until the end of their responses: half of all that
/// a core serves.
const MAX_CALLS_PER_CLIENT: usize = 1024;

/// Limit of those of a shop's client. All wait for the same few connections to the database: so many reads
/// end within a second on a busy machine, far below the timeout of others that wait behind them.
const MAX_CALLS_PER_SHOP_CLIENT: usize = 128;

/// Limit of its lists, which are counted apart: each reads a hundred times as much as another call.
const MAX_LISTS_PER_SHOP_CLIENT: usize = 16;

/// The middleware that authenticates calls by the [`Authenticator`], and counts them.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) rate_limits: Arc<RateLimits>,
    /// The calls of each client in flight, of a shop's by kind.
    pub(crate) calls: Arc<Concurrency<(ApiClientId, CallKind)>>,
}

impl Authentication {
    /// Counts a call against its caller's rate limit. Dispatchers have none: how often they report
    /// depends on what core sends them.
    fn count(&self, caller: Arc<Caller>) -> Result<Arc<Caller>, Error> {
        if !caller.has(Scope::Notifications) {
            self.rate_limits.check_client(caller.id)?;
        }
        Ok(caller)
    }

    /// Middleware: adds the [`Caller`] to the extensions of a call, and counts the call against its
    /// client's limit until the end of its response.
    pub(crate) async fn authenticate<S>(
        self,
        mut request: Request<Body>,
        inner: S,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        if is_public(request.uri().path()) {
            return inner.oneshot(request).await;
        }
        let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
        let caller = self.authenticator.authenticate(&metadata).await;
        let caller = match caller.and_then(|caller| self.count(caller)) {
            Ok(caller) => caller,
            Err(error) => return Ok(Status::from(error).into_http()),
        };
        let kind = match caller.store {
            Some(_) => CallKind::of(request.uri().path()),
            None => CallKind::Other,
        };
        let limit = match (kind, &caller.store) {
            (CallKind::List, _) => MAX_LISTS_PER_SHOP_CLIENT,
            (CallKind::Other, Some(_)) => MAX_CALLS_PER_SHOP_CLIENT,
            (CallKind::Other, None) => MAX_CALLS_PER_CLIENT,
        };
        let Some(call) = self.calls.enter((caller.id, kind), limit) else {
            return Ok(Status::from(Error::TooManyCalls { limit }).into_http());
        };
        let client = tracing::field::display(caller.id);
        tracing::Span::current().record("client.id", client);
        request.extensions_mut().insert(caller);
        *request.headers_mut() = metadata.into_headers();
        Ok(hold(call, inner.oneshot(request).await?))
    }
}
