//! The client against valid, malformed and missing responses.

use std::time::Duration;

use http::StatusCode;
use url::Url;

use super::{
    test_server::{Reply, TestServer},
    *,
};

/// For tests in which no call times out.
const LIMITS: Limits = Limits {
    timeout: Duration::from_mins(1),
    concurrency: 2,
    max_response_bytes: 100,
};

fn client(limits: Limits) -> Client {
    Client::new("test", limits).unwrap()
}

fn text(status: u16, text: &str) -> Reply {
    Reply::Text(status, text.to_owned())
}

#[tokio::test]
async fn a_success_or_a_client_error_other_than_408_and_429_is_a_response() {
    let server = TestServer::start(|target, _| match target {
        "/a?q=1" => text(200, "good"),
        _ => text(400, "bad"),
    })
    .await;
    let client = client(LIMITS);

    for (path, status, body) in [
        ("/a?q=1", StatusCode::OK, "good"),
        ("/b", StatusCode::BAD_REQUEST, "bad"),
    ] {
        let response = client.get(&server.url.join(path).unwrap()).await.unwrap();
        assert_eq!(
            (response.status, &response.body[..]),
            (status, body.as_bytes())
        );
    }
    assert_eq!(server.targets(), ["/a?q=1", "/b"]);
}

#[tokio::test]
async fn every_other_response_is_an_error() {
    let incomplete = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let declared = b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n".to_vec();
    let server = TestServer::start(move |target, _| match target {
        "/moved" => text(302, ""),
        "/failed" => text(500, ""),
        "/late" => text(408, ""),
        "/incomplete" => Reply::Bytes(incomplete.clone()),
        "/declared" => Reply::Bytes(declared.clone()),
        "/endless" => Reply::Endless,
        "/garbage" => Reply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()),
        _ => Reply::Close,
    })
    .await;

    for (path, expected) in [
        ("/moved", "the response status is 302 Found"),
        (
            "/failed",
            "the response status is 500 Internal Server Error",
        ),
        ("/late", "the response status is 408 Request Timeout"),
        ("/incomplete", "the response is incomplete"),
        ("/declared", "the response is longer than 100 bytes"),
        ("/endless", "the response is longer than 100 bytes"),
        ("/garbage", "no response"),
        ("/closed", "no response"),
    ] {
        let url = server.url.join(path).unwrap();
        let error = client(LIMITS).get(&url).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_request_on_a_closed_connection_is_retried_once() {
    let server = TestServer::start(|_, earlier| match earlier {
        0 => Reply::Close,
        _ => text(200, "here"),
    })
    .await;

    let response = client(LIMITS).get(&server.url).await.unwrap();

    assert_eq!(&response.body[..], b"here");
    assert_eq!(server.targets().len(), 2);
}

#[tokio::test]
async fn a_call_without_a_response_ends_at_the_timeout_and_releases_its_permit() {
    let server = TestServer::start(|_, earlier| match earlier {
        0 => Reply::Hang,
        _ => text(200, ""),
    })
    .await;
    let client = client(Limits {
        timeout: Duration::from_secs(3),
        concurrency: 1,
        ..LIMITS
    });

    let (first, second) = tokio::join!(client.get(&server.url), async {
        // After the first call has the only permit.
        tokio::task::yield_now().await;
        client.get(&server.url).await
    });

    assert!(matches!(first, Err(Error::Timeout(_))), "{first:?}");
    assert!(matches!(second, Err(Error::Busy)), "{second:?}");
    assert!(client.get(&server.url).await.is_ok());
}

#[tokio::test]
async fn calls_in_flight_stay_within_the_concurrency_limit() {
    let server = TestServer::start(|_, _| Reply::Hang).await;
    let client = client(Limits {
        timeout: Duration::from_secs(1),
        ..LIMITS
    });

    let results = futures_util::future::join_all((0..4).map(|_| client.get(&server.url))).await;

    let busy = |result: &Result<_, _>| matches!(result, Err(Error::Busy));
    assert!(results.iter().all(Result::is_err));
    assert!(
        results.iter().filter(|result| busy(result)).count() >= 2,
        "{results:?}"
    );
    assert!(server.targets().len() <= 2);
}

#[tokio::test]
async fn consecutive_failures_open_the_circuit_breaker() {
    let server = TestServer::start(|_, _| text(500, "")).await;
    let client = client(LIMITS);

    for _ in 0..10 {
        client.get(&server.url).await.unwrap_err();
    }

    assert_eq!(server.targets().len(), 5);
    let error = client.get(&server.url).await.unwrap_err();
    assert!(matches!(error, Error::CircuitOpen(_)), "{error}");
}

#[tokio::test]
async fn retry_after_is_respected() {
    let throttled = b"HTTP/1.1 429 -\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    let server = TestServer::start(move |_, _| Reply::Bytes(throttled.to_vec())).await;
    let client = client(LIMITS);

    let throttled = client.get(&server.url).await.unwrap_err();
    let error = client.get(&server.url).await.unwrap_err();

    assert_eq!(throttled.retry_after(), Some(Duration::from_mins(1)));
    let wait = error.retry_after().unwrap();
    assert!(wait > Duration::from_secs(30) && wait <= Duration::from_mins(1));
    assert_eq!(server.targets().len(), 1);
}

#[tokio::test]
async fn the_error_does_not_contain_the_url() {
    let unreachable: Url = "http://127.0.0.1:1/search?q=24+Rue+de+la+Paix"
        .parse()
        .unwrap();

    let error = client(LIMITS).get(&unreachable).await.unwrap_err();

    assert!(!format!("{error:?}").contains("Paix"), "{error:?}");
}

#[test]
fn a_timeout_is_positive_and_at_most_twenty_seconds() {
    assert_eq!(parse_timeout("500ms"), Ok(Duration::from_millis(500)));
    for wrong in ["", "0s", "-1s", "2", "21s", "1 century"] {
        assert!(parse_timeout(wrong).is_err(), "{wrong}");
    }
}
