//! The caller of a call: which calls need one, who it is, how many calls it may have in flight, and what it may do.

use std::sync::Arc;

use domain::{
    address::Address,
    api_client::{Scope, Scopes, TaskStatus},
    id::{ApiClientId, CourierId},
    store::Store,
};
use http::HeaderValue;
use process::metrics::Counters;
use proto::iri::Collection;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, body::Body, metadata::MetadataMap};
use tower::{Service, ServiceExt as _};

use super::{audit::Audit, authenticator::Authenticator, rate_limits::RateLimits};
use crate::{
    call_limits::{Concurrency, hold},
    error::{Error, Unauthenticated},
};

/// The path prefix of the platform's services. Health checks and reflection have others.
const PLATFORM: &str = "/delivery.v1.";

const TOKENS: &str = "/delivery.v1.Tokens/";

/// Counted by the rate limit of token requests. Public keys, which are anonymous too, are not: a gateway
/// reads them for all of its clients.
pub(crate) const ISSUE_TOKEN: &str = "/delivery.v1.Tokens/IssueToken";

/// What the holder of a delivery's link may call.
pub(crate) const GET_TRACKING: &str = "/delivery.v1.Tracking/GetTracking";
pub(crate) const GET_TRACKING_LOGO: &str = "/delivery.v1.Tracking/GetTrackingLogo";

pub(crate) fn is_of_platform(path: &str) -> bool {
    path.starts_with(PLATFORM)
}

/// Whether a call needs no caller.
pub(crate) fn is_public(path: &str) -> bool {
    !is_of_platform(path) || is_anonymous(path)
}

/// Whether a call of the platform needs no caller.
pub(crate) fn is_anonymous(path: &str) -> bool {
    path.starts_with(TOKENS) || [GET_TRACKING, GET_TRACKING_LOGO].contains(&path)
}

/// Calls that are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallKind {
    /// A page, which costs a hundred times as much as another call.
    List,
    /// A search for texts, which reads thousands of deliveries.
    Search,
    Other,
}

impl CallKind {
    pub(crate) fn of(path: &str) -> Self {
        let rpc = path.rsplit('/').next().unwrap_or_default();
        // The choices of a time slot are computed, not read.
        if rpc.starts_with("List") && rpc != "ListTimeSlotChoices" {
            Self::List
        } else if rpc == "SearchDeliveries" {
            Self::Search
        } else {
            Self::Other
        }
    }
}

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
    /// Middleware: adds the [`Caller`] to the extensions of a call, counts the call against its client's
    /// limit until the end of its response, and says in the response what the client sees of tasks.
    pub(crate) async fn authenticate<S>(
        self,
        mut request: http::Request<Body>,
        inner: S,
    ) -> Result<http::Response<Body>, S::Error>
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>>,
    {
        if is_public(request.uri().path()) {
            return inner.oneshot(request).await;
        }
        let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
        let caller = self.authenticator.authenticate(&metadata).await;
        let counted = caller.and_then(|caller| {
            // Dispatchers have no limit: how often they report depends on what core sends them.
            if !caller.has(Scope::Notifications) {
                self.rate_limits.check_client(caller.id)?;
            }
            Ok(caller)
        });
        let caller = match counted {
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
        let caller = if caller.has(Scope::DispatchRead) {
            let arrived_at = self.authenticator.clock.now();
            Arc::new(Caller {
                audit: Audit::of_call(caller.id, &request, arrived_at),
                ..Caller::clone(&caller)
            })
        } else {
            caller
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

pub(crate) const AUDIT: &str = "audit";

/// What an audited call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Changed,
    /// Nothing: the resource already was as requested.
    Unchanged,
    /// Nothing: its response is that of an earlier call, which may have been cancelled before its line.
    Replayed,
}

impl Effect {
    pub(crate) fn of<M>(reply: &Response<M>) -> Self {
        if reply.metadata().contains_key(proto::IDEMPOTENT_REPLAYED) {
            Self::Replayed
        } else {
            Self::Changed
        }
    }
}

/// An API client with a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) id: ApiClientId,
    pub(crate) scopes: Scopes,
    pub(crate) store: Option<Store>,
    /// As whom it works.
    pub(crate) courier_id: Option<CourierId>,
    pub(crate) task_status: TaskStatus,
    /// The client's own default pickup address.
    pub(crate) default_address: Option<Address>,
    /// Of this call.
    pub(crate) audit: Audit,
}

impl Caller {
    /// The caller of a request, whom [`Authentication`] has identified, and the message.
    pub(crate) fn of<T>(request: Request<T>) -> Result<(Arc<Self>, T), Error> {
        let (_, mut extensions, message) = request.into_parts();
        let caller = extensions
            .remove()
            .ok_or(Error::Unauthenticated(Unauthenticated::NoToken))?;
        Ok((caller, message))
    }

    /// The caller of a request, whose token must have a scope, and the message.
    pub(crate) fn with_scope<T>(
        request: Request<T>,
        scope: Scope,
    ) -> Result<(Arc<Self>, T), Error> {
        let (caller, message) = Self::of(request)?;
        caller.require(scope)?;
        Ok((caller, message))
    }

    /// A caller without scopes, for an operator's request on behalf of a store.
    pub(crate) fn of_store(id: ApiClientId, store: Store) -> Self {
        Self {
            id,
            scopes: Scopes::new([]),
            store: Some(store),
            courier_id: None,
            task_status: TaskStatus::Specified,
            default_address: None,
            audit: Audit::default(),
        }
    }

    /// The same client on behalf of a store, which is not its own.
    pub(crate) fn for_store(&self, store: Store) -> Self {
        Self {
            scopes: self.scopes.clone(),
            audit: self.audit.clone(),
            ..Self::of_store(self.id, store)
        }
    }

    pub(crate) fn require(&self, scope: Scope) -> Result<(), Error> {
        if self.has(scope) {
            Ok(())
        } else {
            Err(Error::Forbidden { scope })
        }
    }

    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.scopes.permits(scope)
    }

    /// Logs what an operator or dispatch has done: the rpc and the resource it changed. Nothing for a shop's
    /// own changes.
    pub(crate) fn audit<M>(&self, rpc: &'static str, resource: &str, reply: &Response<M>) {
        self.audit_effect(rpc, resource, Effect::of(reply));
    }

    pub(crate) fn audit_effect(&self, rpc: &'static str, resource: &str, effect: Effect) {
        if self.has(Scope::Dispatch) {
            let client = Collection::ApiClients.name(self.id);
            let unchanged = (effect == Effect::Unchanged).then_some(true);
            let replayed = (effect == Effect::Replayed).then_some(true);
            tracing::info!(target: AUDIT, client, rpc, resource, unchanged, replayed);
        }
    }

    /// The courier as whom it works, if it has the scope.
    pub(crate) fn courier(&self) -> Option<CourierId> {
        self.courier_id.filter(|_| self.has(Scope::Courier))
    }

    pub(crate) fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use tonic::Code;
    use tower::service_fn;

    use super::*;
    use crate::auth::{authenticator::tests::authenticator, rate_limits::RateLimitConfig};

    #[test]
    fn all_calls_of_the_platform_but_token_requests_and_tracking_pages_need_a_caller() {
        for (path, of_platform, public) in [
            ("/delivery.v1.Tasks/GetTask", true, false),
            ("/delivery.v1.Tokens/IssueToken", true, true),
            ("/delivery.v1.TokensOfOthers/GetToken", true, false),
            (GET_TRACKING, true, true),
            (GET_TRACKING_LOGO, true, true),
            ("/delivery.v1.Tracking/RevokeTracking", true, false),
            ("/delivery.v1.Tracking/GetTrackings", true, false),
            ("/grpc.health.v1.Health/Check", false, true),
        ] {
            let read = (is_of_platform(path), is_public(path));
            assert_eq!(read, (of_platform, public), "{path}");
        }
    }

    #[test]
    fn pages_and_searches_are_known_by_the_names_of_their_rpcs() {
        for (path, expected) in [
            ("/delivery.v1.Deliveries/ListDeliveries", CallKind::List),
            ("/delivery.v1.Deliveries/SearchDeliveries", CallKind::Search),
            ("/delivery.v1.Deliveries/GetDelivery", CallKind::Other),
            (
                "/delivery.v1.TimeSlots/ListTimeSlotChoices",
                CallKind::Other,
            ),
        ] {
            assert_eq!(CallKind::of(path), expected, "{path}");
        }
    }

    /// Sends a call, which fails with the code that is returned. A slow one gets no response.
    async fn call(
        authentication: &Authentication,
        metadata: &MetadataMap,
        rpc: &str,
        is_slow: bool,
    ) -> Option<Code> {
        let mut request = http::Request::new(Body::empty());
        *request.uri_mut() = format!("/delivery.v1.{rpc}").parse().unwrap();
        *request.headers_mut() = metadata.clone().into_headers();
        let service = service_fn(move |_: http::Request<Body>| async move {
            if is_slow {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
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
