use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use tokio::time::Instant;
use tonic::Code;
use tower::{ServiceBuilder, service_fn};

use super::*;
use crate::{
    auth::{
        caller::{GET_TRACKING, ISSUE_TOKEN},
        rate_limits::RateLimitConfig,
    },
    service::middleware,
};

async fn call<S>(service: S, path: &str) -> Option<Status>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = service.oneshot(request).await.unwrap();
    Status::from_header_map(response.headers())
}

const SLOW: &str = "/delivery.v1.Tasks/Slow";
const GET_TASK: &str = "/delivery.v1.Tasks/GetTask";

/// How long the slow calls of [`service`] take.
const RESPONSE_TIME: Duration = Duration::from_hours(1);

/// A service with slow calls.
fn service()
-> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone
{
    let limits = limits(unlimited());
    ServiceBuilder::new()
        .layer(middleware(move |request, inner| {
            limits.clone().limit(request, inner)
        }))
        .service(service_fn(|request: Request<Body>| async move {
            if [SLOW, IMPORT_ADDRESSES, TEST_WEBHOOK].contains(&request.uri().path()) {
                tokio::time::sleep(RESPONSE_TIME).await;
            }
            Ok(Response::new(Body::empty()))
        }))
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_response_in_time_is_unavailable() {
    let service = service();
    for (path, code, seconds) in [
        (SLOW, Some(Code::Unavailable), 15),
        (TEST_WEBHOOK, Some(Code::Unavailable), 27),
        (IMPORT_ADDRESSES, None, RESPONSE_TIME.as_secs()),
        (GET_TASK, None, 0),
    ] {
        let started = Instant::now();

        let status = call(service.clone(), path).await;

        let status = status.map(|status| status.code());
        let elapsed = started.elapsed().as_secs();
        assert_eq!((status, elapsed), (code, seconds), "{path}");
    }
}

fn unlimited() -> RateLimits {
    RateLimits::new(&RateLimitConfig::off(), Counters::new("limit", &[]))
}

fn limits(rate_limits: RateLimits) -> CallLimits {
    CallLimits::new(Arc::new(rate_limits), Counters::new("reason", &[]))
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

const PUBLIC_KEYS: &str = "/delivery.v1.Tokens/ListPublicKeys";
const HEALTH: &str = "/grpc.health.v1.Health/Watch";

#[tokio::test]
async fn health_checks_and_token_requests_have_separate_limits_per_peer() {
    let limits = limits(unlimited());
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

#[tokio::test]
async fn the_token_requests_of_a_peer_leave_a_share_to_others() {
    let limits = limits(unlimited());
    let request = || {
        let calls = &limits.anonymous_calls;
        calls.take(PEER.into(), 1, Usage::Kept, CancellationToken::new())
    };
    let requests: Vec<_> = std::iter::from_fn(request).collect();
    let other = Ipv4Addr::new(192, 0, 2, 1);

    let of_peer = call_of(PEER, &limits, ISSUE_TOKEN, Body::empty()).await;
    let of_other = call_of(other, &limits, ISSUE_TOKEN, Body::empty()).await;

    let refused = Some(Code::ResourceExhausted);
    assert_eq!((of_peer, of_other), (refused, None));
    drop(requests);
    let of_peer = call_of(PEER, &limits, ISSUE_TOKEN, Body::empty()).await;
    assert_eq!(of_peer, None);
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
    let limits = limits(unlimited());
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
    let limit = |peer: &str, anonymous: &str| {
        let config = RateLimitConfig {
            peer: peer.parse().unwrap(),
            token_peer: anonymous.parse().unwrap(),
            tracking_peer: anonymous.parse().unwrap(),
            ..RateLimitConfig::off()
        };
        let rate_limits = RateLimits::new(&config, Counters::new("limit", &[]));
        limits(rate_limits)
    };
    let [first, second] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    for (limits, calls) in [
        (limit("2/1d", "off"), [GET_TASK, ISSUE_TOKEN, GET_TASK]),
        (limit("off", "1/1d"), [GET_TASK, ISSUE_TOKEN, ISSUE_TOKEN]),
        (
            limit("off", "1/1d"),
            [ISSUE_TOKEN, PUBLIC_KEYS, ISSUE_TOKEN],
        ),
        (
            limit("off", "1/1d"),
            [GET_TRACKING, ISSUE_TOKEN, GET_TRACKING],
        ),
    ] {
        let mut codes = Vec::new();
        for path in calls {
            codes.push(call_of(first, &limits, path, Body::empty()).await);
        }
        codes.push(call_of(second, &limits, ISSUE_TOKEN, Body::empty()).await);

        assert_eq!(codes, [None, None, Some(Code::ResourceExhausted), None]);
    }
}

#[tokio::test]
async fn a_stream_of_messages_counts_as_one_message_and_ends_without_memory_for_it() {
    let body = |messages| {
        let frames =
            (0..messages).map(|_| Ok::<_, Infallible>(Frame::data(vec![0; 1 << 20].into())));
        StreamBody::new(stream::iter(frames))
    };
    let counted = AtomicUsize::new(0);
    let grow = |more| {
        counted.fetch_add(more, Ordering::Relaxed);
        true
    };

    let mut is_received = false;
    let counted_body = CountedBody::new(body(20), grow, || is_received = true);
    let received = counted_body.collect().await.unwrap();

    assert_eq!(received.to_bytes().len(), 20 << 20);
    assert!(is_received);
    assert_eq!(counted.into_inner(), 2 * MAX_MESSAGE_SIZE);
    let refused = CountedBody::new(body(1), |_| false, || {}).collect().await;
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
}

#[test]
fn each_holder_enters_up_to_the_limit_until_it_leaves() {
    let concurrency = Concurrency::new();
    let first = concurrency.enter("a", 2);
    let _second = concurrency.enter("a", 2).unwrap();

    assert!(concurrency.enter("a", 2).is_none());
    assert!(concurrency.enter("b", 2).is_some());
    drop(first);
    assert!(concurrency.enter("a", 2).is_some());
    assert_eq!(*concurrency.entered.lock(), HashMap::from([("a", 1)]));
}
