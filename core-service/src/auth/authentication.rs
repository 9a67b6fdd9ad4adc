//! Authenticates calls before their message is read, so that only known callers make core read one.

use std::sync::Arc;

use admission::Concurrency;
use domain::{
    api_client::{Scope, TaskStatus},
    id::ApiClientId,
};
use http::{HeaderValue, Request, Response};
use process::metrics::Counters;
use tokio::sync::Semaphore;
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

/// Limit of the calls in flight of all clients: as many as two gateways send, each with its default limit of
/// 1024. A call counts once its client is known and has not more than its share: a burst of one client does
/// not make those of others fail.
pub(crate) const MAX_CALLS: usize = 2048;

/// Limit of the calls of a platform's client in flight, until the end of their responses.
const MAX_CALLS_PER_CLIENT: usize = 1024;

/// Limit of those of a shop's client. All wait for the same few connections to the database: so many reads
/// end within a second on a busy machine, far below the timeout of others that wait behind them.
const MAX_CALLS_PER_SHOP_CLIENT: usize = 128;

/// Limit of its lists, which are counted apart: each reads a hundred times as much as another call.
const MAX_LISTS_PER_SHOP_CLIENT: usize = 16;

/// Limit of the searches of any client, which are counted apart too.
const MAX_SEARCHES_PER_CLIENT: usize = 8;

/// The middleware that authenticates calls by the [`Authenticator`], and counts them.
#[derive(Clone)]
pub(crate) struct Authentication {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) rate_limits: Arc<RateLimits>,
    /// The calls of each client in flight, by kind.
    pub(crate) calls: Arc<Concurrency<(ApiClientId, CallKind)>>,
    /// Those of all clients, until the head of their responses.
    pub(crate) all_calls: Arc<Semaphore>,
    /// Calls rejected because too many are in flight.
    pub(crate) shed: Counters,
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

    /// Middleware: adds the [`Caller`] to the extensions of a call, counts the call against its client's
    /// limit until the end of its response, and says in the response what the client sees of tasks.
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
        let kind = match (CallKind::of(request.uri().path()), &caller.store) {
            (CallKind::List, None) => CallKind::Other,
            (kind, _) => kind,
        };
        let limit = match (kind, &caller.store) {
            (CallKind::Search, _) => MAX_SEARCHES_PER_CLIENT,
            (CallKind::List, _) => MAX_LISTS_PER_SHOP_CLIENT,
            (CallKind::Other, Some(_)) => MAX_CALLS_PER_SHOP_CLIENT,
            (CallKind::Other, None) => MAX_CALLS_PER_CLIENT,
        };
        let Some(call) = self.calls.enter((caller.id, kind), limit) else {
            return Ok(Status::from(Error::TooManyCalls { limit }).into_http());
        };
        let Ok(_permit) = self.all_calls.try_acquire_owned() else {
            self.shed.inc("calls");
            return Ok(Status::from(Error::from(storage::Error::Overloaded)).into_http());
        };
        let client = tracing::field::display(caller.id);
        tracing::Span::current().record("client.id", client);
        let seen = [
            (
                proto::FULL_TASK_STATUS,
                caller.task_status == TaskStatus::Full,
            ),
            (
                proto::SEES_COURIERS,
                caller.has(Scope::DispatchRead) || caller.courier().is_some(),
            ),
        ];
        request.extensions_mut().insert(caller);
        *request.headers_mut() = metadata.into_headers();
        let mut response = inner.oneshot(request).await?;
        for (key, _) in seen.into_iter().filter(|(_, is_seen)| *is_seen) {
            let value = HeaderValue::from_static("true");
            response.headers_mut().insert(key, value);
        }
        Ok(hold(call, response))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use process::metrics::Counters;
    use tonic::Code;
    use tower::service_fn;

    use super::*;
    use crate::auth::{authenticator::tests::authenticator, rate_limits::RateLimitConfig};

    /// Sends a call, which fails with the code that is returned. A slow one gets no response.
    async fn call(
        authentication: &Authentication,
        metadata: &MetadataMap,
        rpc: &str,
        is_slow: bool,
    ) -> Option<Code> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/delivery.v1.{rpc}").parse().unwrap();
        *request.headers_mut() = metadata.clone().into_headers();
        let service = service_fn(move |_: Request<Body>| async move {
            if is_slow {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let Ok(response) = authentication.clone().authenticate(request, service).await;
        Some(Status::from_header_map(response.headers())?.code())
    }

    fn authentication(authenticator: Authenticator, max_calls: usize) -> Authentication {
        let rejected = || Counters::new("reason", &["calls"]);
        Authentication {
            authenticator: Arc::new(authenticator),
            rate_limits: Arc::new(RateLimits::new(&RateLimitConfig::off(), rejected())),
            calls: Concurrency::new(),
            all_calls: Arc::new(Semaphore::new(max_calls)),
            shed: rejected(),
        }
    }

    #[tokio::test]
    async fn a_call_beyond_the_limit_of_all_clients_is_rejected_until_another_has_its_response() {
        let (_directory, authenticator, _, metadata) = authenticator().await;
        let authentication = authentication(authenticator, 1);
        let get = |is_slow| call(&authentication, &metadata, "Tasks/GetTask", is_slow);
        assert_eq!(get(false).await, None);
        let mut slow = Box::pin(get(true));
        assert_eq!(slow.as_mut().now_or_never(), None);

        assert_eq!(get(false).await, Some(Code::ResourceExhausted));

        drop(slow);
        assert_eq!(get(false).await, None);
    }

    #[tokio::test]
    async fn a_client_has_few_searches_in_flight_besides_its_other_calls() {
        let (_directory, authenticator, _, metadata) = authenticator().await;
        let authentication = authentication(authenticator, 100);
        let send = |rpc, is_slow| call(&authentication, &metadata, rpc, is_slow);
        let search = "Deliveries/SearchDeliveries";
        // From now on, the caller is known at once.
        assert_eq!(send(search, false).await, None);
        let mut slow: Vec<_> = (0..MAX_SEARCHES_PER_CLIENT)
            .map(|_| Box::pin(send(search, true)))
            .collect();
        for search in &mut slow {
            assert_eq!(search.as_mut().now_or_never(), None);
        }

        assert_eq!(send(search, false).await, Some(Code::ResourceExhausted));
        assert_eq!(send("Deliveries/GetDelivery", false).await, None);

        slow.pop();
        assert_eq!(send(search, false).await, None);
    }
}
