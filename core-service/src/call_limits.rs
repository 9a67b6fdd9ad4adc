//! Timeout and concurrency limits for gRPC calls. While the database hangs, callers get an error
//! before their own timeout, and the number of waiting calls stays bounded. Authentication comes
//! after these limits and before the message is read, so a call with an invalid token counts only
//! while the token is verified. Anonymous calls, such as token requests, have a limit of their
//! own and count once their message is complete.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use admission::{Concurrency, Peer, Permit, Pool, Usage};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use process::metrics::Counters;
use rate_limits::peer_key;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body};
use tower::{Service, ServiceExt as _};

use crate::{
    auth::{
        call_paths::{is_of_platform, is_public},
        rate_limits::RateLimits,
    },
    error::{Error, Unauthenticated},
};

/// Timeout of a call until its response starts. No call takes nearly as long while the database
/// responds; the gateway's own timeout is 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// This call has no timeout, because the addresses of a country take minutes. Each of its messages
/// has one.
const IMPORT_ADDRESSES: &str = "/delivery.v1.Addresses/ImportAddresses";

const TEST_WEBHOOK: &str = "/delivery.v1.Webhooks/TestWebhook";

/// Timeout of `TestWebhook`, which waits for a dispatcher to send and report. Also less than the
/// gateway's 30 s.
const TEST_WEBHOOK_TIMEOUT: Duration = Duration::from_secs(27);

/// Limit of calls in flight by callers with a token: as many as two gateways send, each with its
/// default limit of 1024.
const MAX_CALLS: usize = 2048;

/// Limit of anonymous calls in flight: as many as a gateway sends with its default limit, so that it
/// is the gateway where excess requests wait.
const MAX_ANONYMOUS_CALLS: usize = 1024;

/// Limits of the anonymous calls whose message is incomplete, in all and of a peer. The message of a
/// gateway's token request arrives at once.
const MAX_INCOMPLETE_CALLS: usize = 8 * 1024;
const MAX_INCOMPLETE_CALLS_PER_PEER: usize = 1024;

/// Limit of the health checks and reflection calls of a peer.
const MAX_OTHER_CALLS_PER_PEER: usize = 256;

/// Timeout for the message of an anonymous call.
const ANONYMOUS_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of the message of an anonymous call, in bytes: an API key, its secret and scopes,
/// which are below 1 KiB.
const MAX_ANONYMOUS_MESSAGE: usize = 4 * 1024;

/// The limits of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct CallLimits {
    calls: Arc<Semaphore>,
    anonymous_calls: Arc<Semaphore>,
    /// Anonymous calls whose message is incomplete.
    incomplete_calls: Arc<Pool<IpAddr>>,
    /// Health checks and reflection.
    other_calls: Arc<Concurrency<IpAddr>>,
    rate_limits: Arc<RateLimits>,
    timeout: Duration,
    /// Calls rejected because too many are in flight.
    shed: Counters,
}

impl CallLimits {
    pub(crate) fn new(rate_limits: Arc<RateLimits>, shed: Counters) -> Self {
        Self::with(MAX_CALLS, CALL_TIMEOUT, rate_limits, shed)
    }

    fn with(calls: usize, timeout: Duration, rate_limits: Arc<RateLimits>, shed: Counters) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(calls)),
            anonymous_calls: Arc::new(Semaphore::new(MAX_ANONYMOUS_CALLS)),
            incomplete_calls: Pool::new(
                MAX_INCOMPLETE_CALLS,
                MAX_INCOMPLETE_CALLS_PER_PEER,
                shed.clone(),
                "peer",
            ),
            other_calls: Concurrency::new(),
            rate_limits,
            timeout,
            shed,
        }
    }

    /// Middleware: rejects a call beyond the limits.
    pub(crate) async fn limit<S>(
        self,
        mut request: Request<Body>,
        inner: S,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        // Calls within the process have no peer.
        let peer = request.extensions().get();
        let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |Peer(peer)| peer_key(*peer));
        let path = request.uri().path();
        if !is_of_platform(path) {
            let Some(call) = self.other_calls.enter(peer, MAX_OTHER_CALLS_PER_PEER) else {
                self.shed.inc("peer");
                return Ok(too_many_of_peer().into_http());
            };
            return Ok(hold(call, inner.oneshot(request).await?));
        }
        let call_timeout = match path {
            TEST_WEBHOOK => TEST_WEBHOOK_TIMEOUT,
            IMPORT_ADDRESSES => Duration::MAX,
            _ => self.timeout,
        };
        let is_anonymous = is_public(path);
        if let Err(error) = self.rate_limits.check_peer(peer, is_anonymous) {
            return Ok(Status::from(error).into_http());
        }
        let semaphore = if is_anonymous {
            request = match receive(&self.incomplete_calls, peer, request).await {
                Ok(request) => request,
                Err(status) => return Ok(status.into_http()),
            };
            self.anonymous_calls
        } else {
            self.calls
        };
        let Ok(_permit) = semaphore.try_acquire_owned() else {
            let reason = if is_anonymous {
                "token_requests"
            } else {
                "calls"
            };
            self.shed.inc(reason);
            return Ok(reject(storage::Error::Overloaded));
        };
        let of_client =
            grpc_timeout(request.headers()).filter(|of_client| *of_client < call_timeout);
        let response = timeout(of_client.unwrap_or(call_timeout), inner.oneshot(request)).await;
        response.unwrap_or_else(|_| {
            Ok(match of_client {
                Some(_) => Status::cancelled("the deadline has passed").into_http(),
                None => reject(storage::Error::Timeout),
            })
        })
    }
}

/// The timeout that the client of a call sets (gRPC over HTTP/2: at most eight digits and a unit).
fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u32 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let unit = match unit {
        "H" => Duration::from_hours(1),
        "M" => Duration::from_mins(1),
        "S" => Duration::from_secs(1),
        "m" => Duration::from_millis(1),
        "u" => Duration::from_micros(1),
        "n" => Duration::from_nanos(1),
        _ => return None,
    };
    Some(unit * count)
}

/// Receives the whole message of a call.
async fn receive(
    incomplete_calls: &Arc<Pool<IpAddr>>,
    peer: IpAddr,
    request: Request<Body>,
) -> Result<Request<Body>, Status> {
    let evicted = CancellationToken::new();
    let permit = incomplete_calls.take(peer, 1, Usage::New, evicted.clone());
    let _permit: Permit<IpAddr> = permit.ok_or_else(too_many_of_peer)?;
    let (parts, body) = request.into_parts();
    let message = Limited::new(body, MAX_ANONYMOUS_MESSAGE).collect();
    let message = timeout(
        ANONYMOUS_MESSAGE_TIMEOUT,
        evicted.run_until_cancelled(message),
    )
    .await
    .map_err(|_| Status::deadline_exceeded("the message is incomplete"))?
    .ok_or_else(too_many_of_peer)?
    .map_err(|error| message_error(&*error))?;
    let body = Body::new(Full::new(message.to_bytes()));
    Ok(Request::from_parts(parts, body))
}

fn too_many_of_peer() -> Status {
    Status::resource_exhausted("too many calls without a token of this peer")
}

fn message_error(error: &(dyn std::error::Error + 'static)) -> Status {
    if error.is::<LengthLimitError>() {
        // No client has credentials of that size.
        return Error::Unauthenticated(Unauthenticated::InvalidClient).into();
    }
    match error.downcast_ref::<Status>() {
        Some(status) => status.clone(),
        None => Status::cancelled("the message was not received"),
    }
}

/// Keeps a guard until the end of a response.
pub(crate) fn hold(guard: impl Send + 'static, response: Response<Body>) -> Response<Body> {
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // Dropped together with the body.
            let _ = &guard;
            frame
        }))
    })
}

fn reject(error: storage::Error) -> Response<Body> {
    Status::from(Error::from(error)).into_http()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use http_body_util::StreamBody;
    use process::middleware::middleware;
    use tonic::Code;
    use tower::{ServiceBuilder, service_fn};

    use super::*;
    use crate::auth::rate_limits::RateLimitConfig;

    async fn call<S>(service: S, path: &str) -> Option<Status>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = service.oneshot(request).await.unwrap();
        Status::from_header_map(response.headers())
    }

    /// A service that never responds to `Hanging`.
    fn hanging_service(
        calls: usize,
        timeout: Duration,
    ) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone
    {
        let limits = limits(calls, timeout, unlimited());
        ServiceBuilder::new()
            .layer(middleware(move |request, inner| {
                limits.clone().limit(request, inner)
            }))
            .service(service_fn(|request: Request<Body>| async move {
                if request.uri().path().ends_with("Hanging") {
                    std::future::pending::<()>().await;
                }
                // Longer than the timeout of a test.
                if [IMPORT_ADDRESSES, TEST_WEBHOOK].contains(&request.uri().path()) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok(Response::new(Body::empty()))
            }))
    }

    #[tokio::test]
    async fn a_call_without_a_response_in_time_is_unavailable() {
        let service = hanging_service(1, Duration::from_millis(1));

        let status = call(service.clone(), "/delivery.v1.Tasks/Hanging").await;

        assert_eq!(status.map(|status| status.code()), Some(Code::Unavailable));
        let next = call(service.clone(), "/delivery.v1.Tasks/GetTask").await;
        assert!(next.is_none());
        for longer in [IMPORT_ADDRESSES, TEST_WEBHOOK] {
            assert!(call(service.clone(), longer).await.is_none());
        }
    }

    #[tokio::test]
    async fn calls_beyond_the_limit_are_rejected_but_not_health_checks() {
        let service = hanging_service(1, Duration::from_hours(1));
        let mut waiting = std::pin::pin!(call(service.clone(), "/delivery.v1.Tasks/Hanging"));
        assert!(waiting.as_mut().now_or_never().is_none());

        let more = call(service.clone(), "/delivery.v1.Tasks/GetTask").await;
        let health = call(service, "/grpc.health.v1.Health/Check").await;

        let code = more.map(|status| status.code());
        assert_eq!(code, Some(Code::ResourceExhausted));
        assert!(health.is_none());
        assert!(waiting.now_or_never().is_none());
    }

    fn unlimited() -> RateLimits {
        RateLimits::new(&RateLimitConfig::off(), Counters::new("limit", &[]))
    }

    fn limits(calls: usize, timeout: Duration, rate_limits: RateLimits) -> CallLimits {
        CallLimits::with(
            calls,
            timeout,
            Arc::new(rate_limits),
            Counters::new("reason", &[]),
        )
    }

    const PEER: Ipv4Addr = Ipv4Addr::LOCALHOST;

    /// The status of a call of a peer, unless it succeeds.
    async fn call_of(peer: Ipv4Addr, limits: &CallLimits, path: &str, body: Body) -> Option<Code> {
        let mut request = Request::get(path).body(body).unwrap();
        request.extensions_mut().insert(Peer(peer.into()));
        let service =
            service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let response = limits.clone().limit(request, service).await.unwrap();
        Status::from_header_map(response.headers()).map(|status| status.code())
    }

    const ISSUE_TOKEN: &str = "/delivery.v1.Tokens/IssueToken";
    const HEALTH: &str = "/grpc.health.v1.Health/Watch";

    #[tokio::test]
    async fn health_checks_and_token_requests_have_separate_limits_per_peer() {
        let limits = limits(1, Duration::from_hours(1), unlimited());
        let watch = || {
            let calls = &limits.other_calls;
            calls.enter(PEER.into(), MAX_OTHER_CALLS_PER_PEER)
        };
        let _watching: Vec<_> = std::iter::from_fn(watch).collect();

        let other = Ipv4Addr::new(192, 0, 2, 1);
        for (peer, path, expected) in [
            (PEER, HEALTH, Some(Code::ResourceExhausted)),
            (PEER, ISSUE_TOKEN, None),
            (other, HEALTH, None),
        ] {
            let code = call_of(peer, &limits, path, Body::empty()).await;
            assert_eq!(code, expected, "{peer} {path}");
        }
    }

    #[test]
    fn the_timeout_of_a_client_is_read_from_its_header() {
        let timeout = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            grpc_timeout(&headers)
        };
        assert_eq!(timeout("1H"), Some(Duration::from_hours(1)));
        assert_eq!(timeout("20m"), Some(Duration::from_millis(20)));
        assert!(timeout("99999999H").is_some());
        for wrong in ["", "S", "1", "1s", "-1S", "999999999n"] {
            assert_eq!(timeout(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_received_is_rejected_with_its_reason() {
        let limits = limits(1, Duration::from_hours(1), unlimited());
        let failing = |status: Status| {
            let frames = futures_util::stream::once(async { Err(status) });
            Body::new(StreamBody::new(frames))
        };
        let large = Body::new(Full::new(Bytes::from(vec![0; 4097])));

        for (body, expected) in [
            (failing(Status::data_loss("reset")), Code::DataLoss),
            (large, Code::Unauthenticated),
        ] {
            let code = call_of(PEER, &limits, ISSUE_TOKEN, body).await;
            assert_eq!(code, Some(expected));
        }
    }

    #[tokio::test]
    async fn calls_and_token_requests_are_counted_per_peer() {
        let limit = |peer: &str, token_peer: &str| {
            let config = RateLimitConfig {
                peer: peer.parse().unwrap(),
                token_peer: token_peer.parse().unwrap(),
                ..RateLimitConfig::off()
            };
            let rate_limits = RateLimits::new(&config, Counters::new("limit", &[]));
            limits(9, Duration::from_hours(1), rate_limits)
        };
        let get = "/delivery.v1.Tasks/GetTask";
        let [first, second] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
        for (limits, calls) in [
            (limit("2/1d", "off"), [get, ISSUE_TOKEN, get]),
            (limit("off", "1/1d"), [get, ISSUE_TOKEN, ISSUE_TOKEN]),
        ] {
            let mut codes = Vec::new();
            for path in calls {
                codes.push(call_of(first, &limits, path, Body::empty()).await);
            }
            codes.push(call_of(second, &limits, ISSUE_TOKEN, Body::empty()).await);

            assert_eq!(codes, [None, None, Some(Code::ResourceExhausted), None]);
        }
    }
}
