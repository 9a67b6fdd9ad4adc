//! Timeouts, limits and the circuit breaker.

use domain::id::StoreId;
use futures_util::future::join_all;
use tokio::time::advance;
use upstream::test_server::{Reply, TestServer};

use super::*;

/// The error of a query that fails.
async fn failure(geocoder: &HttpGeocoder, query: &Query) -> String {
    match geocoder.geocode(query).await {
        Err(Error::Unavailable(cause)) => cause.to_string(),
        Ok(result) => panic!("{result:?}"),
    }
}

#[tokio::test]
async fn a_service_that_hangs_fails_after_the_timeout() {
    let server = TestServer::start(|_, _| Reply::Hang).await;
    let geocoder = geocoder(Protocol::Photon, &server.url, "timeout=1s");

    let error = failure(&geocoder, &Query::new(TEXT)).await;

    assert_eq!(error, "photon (127.0.0.1): no response within 1s");
}

#[tokio::test]
async fn requests_in_flight_stay_within_the_concurrency_limit() {
    let server = TestServer::start(|_, _| Reply::Hang).await;
    let options = "timeout=2s&rate=1000&concurrency=1";
    let geocoder = geocoder(Protocol::Photon, &server.url, options);
    let query = Query::new(TEXT);

    let errors = tokio::join!(failure(&geocoder, &query), failure(&geocoder, &query));

    let mut errors = [errors.0, errors.1];
    errors.sort_unstable();
    assert_eq!(
        errors,
        [
            "photon (127.0.0.1): no response within 2s",
            "photon (127.0.0.1): too many requests in flight"
        ]
    );
    assert_eq!(server.targets().len(), 1);
}

#[tokio::test]
async fn every_protocol_respects_retry_after() {
    const THROTTLED: &[u8] = b"HTTP/1.1 429 -\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    for (protocol, ..) in PROTOCOLS {
        let server = TestServer::start(|_, _| Reply::Bytes(THROTTLED.to_vec())).await;
        let geocoder = geocoder(protocol, &server.url, UNLIMITED);
        let query = Query::new(TEXT);

        let throttled = failure(&geocoder, &query).await;
        let rejected = failure(&geocoder, &query).await;

        assert!(
            throttled.ends_with("the response status is 429 Too Many Requests"),
            "{throttled}"
        );
        assert!(
            rejected.contains("the circuit breaker is open for another"),
            "{rejected}"
        );
        assert_eq!(server.targets().len(), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn consecutive_failures_open_the_circuit_of_every_protocol() {
    for (protocol, ..) in PROTOCOLS {
        let server = TestServer::start(|_, _| Reply::Text(500, String::new())).await;
        let geocoder = geocoder(protocol, &server.url, UNLIMITED);

        for _ in 0..10 {
            failure(&geocoder, &Query::new(TEXT)).await;
        }

        assert_eq!(server.targets().len(), 5, "{protocol:?}");
    }
}

/// A query of a store.
fn query_of(store_id: StoreId, text: &str) -> Query {
    Query {
        store_id: Some(store_id),
        ..Query::new(text)
    }
}

#[tokio::test]
async fn a_store_with_many_queries_leaves_a_turn_of_the_rate_limit_to_another() {
    let server = TestServer::start(|_, _| Reply::Text(200, "[]".to_owned())).await;
    let geocoder = geocoder(Protocol::Nominatim, &server.url, "rate=2&timeout=4s");
    let [busy, other] = [(); 2].map(|()| StoreId::new());
    let query = query_of(busy, TEXT);
    let busy_queries = join_all((0..100).map(|_| geocoder.search(&query)));
    let query = query_of(other, TEXT);
    let other_query = async {
        // The first request of the busy store is sent; its next one waits for the rate limit.
        while server.targets().is_empty() {
            tokio::task::yield_now().await;
        }
        geocoder.search(&query).await
    };

    let (busy_results, other_result) = tokio::join!(busy_queries, other_query);

    assert!(other_result.is_ok(), "{other_result:?}");
    assert!(busy_results.iter().any(Result::is_err));
}

#[tokio::test]
async fn a_store_whose_queries_get_no_response_leaves_permits_to_another() {
    let server = TestServer::start(|target, _| {
        if target.contains("slow") {
            Reply::Hang
        } else {
            Reply::Text(200, "[]".to_owned())
        }
    })
    .await;
    for concurrency in [2, 5] {
        let options = format!("rate=1000&timeout=2s&concurrency={concurrency}");
        let geocoder = geocoder(Protocol::Nominatim, &server.url, &options);
        let [busy, other] = [(); 2].map(|()| StoreId::new());
        let query = query_of(busy, "slow");
        let before = server.targets().len();
        let busy_queries = join_all((0..20).map(|_| geocoder.search(&query)));
        let query = query_of(other, TEXT);
        let other_query = async {
            let half = usize::div_ceil(concurrency, 2);
            while server.targets().len() < before + half {
                tokio::task::yield_now().await;
            }
            let result = geocoder.search(&query).await;
            (result, server.targets().len() - before - half)
        };

        let (busy_results, (other_result, others)) = tokio::join!(busy_queries, other_query);

        assert!(other_result.is_ok(), "{other_result:?}");
        assert_eq!(others, 1);
        assert!(busy_results.iter().all(Result::is_err));
    }
}

fn geocoder_without_server(options: &str) -> HttpGeocoder {
    let url = "http://127.0.0.1:9".parse().unwrap();
    geocoder(Protocol::Nominatim, &url, options)
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_reach_the_rate_limit_with_a_timer_of_milliseconds() {
    let geocoder = geocoder_without_server("rate=300&timeout=20s");
    let queue = geocoder.queues.of(None);
    let start = Instant::now();

    let permitted = join_all(
        (0..=300).map(|_| geocoder.wait_for_rate_limit(&queue, start + Duration::from_secs(15))),
    )
    .await;

    assert!(permitted.iter().all(Result::is_ok));
    let millis = start.elapsed().as_millis();
    assert!((999..=1001).contains(&millis), "{millis} ms");
}

#[tokio::test(start_paused = true)]
async fn time_without_requests_does_not_shorten_the_next_interval() {
    let geocoder = geocoder_without_server("rate=2&timeout=20s");
    let queue = geocoder.queues.of(None);
    let request_deadline = Instant::now() + Duration::from_secs(15);
    geocoder
        .wait_for_rate_limit(&queue, request_deadline)
        .await
        .unwrap();
    advance(Duration::from_millis(900)).await;
    let start = Instant::now();

    for _ in 0..2 {
        geocoder
            .wait_for_rate_limit(&queue, request_deadline)
            .await
            .unwrap();
    }

    let millis = start.elapsed().as_millis();
    assert!((500..=501).contains(&millis), "{millis} ms");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_not_made_without_time_for_its_response() {
    let geocoder = geocoder_without_server("rate=1&timeout=4s");
    let queue = geocoder.queues.of(None);
    let start = Instant::now();
    let request_deadline = start + Duration::from_millis(1500);
    let mut made_at = Vec::new();

    for _ in 0..3 {
        let permitted = geocoder.wait_for_rate_limit(&queue, request_deadline).await;
        made_at.push((permitted.is_ok(), start.elapsed().as_millis() / 10));
    }

    assert_eq!(made_at, [(true, 0), (true, 100), (false, 150)]);
    // Nor once the rate permits it again.
    advance(Duration::from_secs(1)).await;
    let too_late = geocoder.wait_for_rate_limit(&queue, request_deadline).await;
    assert!(too_late.is_err());
}
