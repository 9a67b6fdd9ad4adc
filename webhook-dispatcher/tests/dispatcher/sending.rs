//! The request at the receiver, and the outcome reported to core.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderMap, HeaderName};
use proto::{Outcome, outcome::Failure};
use standardwebhooks::Webhook;
use tokio::sync::Barrier;

use crate::harness::{
    Dispatcher, FakeCore, OK, SECRET, attempt, attempt_with, config, delivered, failed,
    notification, outcome, responding, with_timeout,
};

#[tokio::test]
async fn a_receiver_gets_the_signed_notification() {
    let (url, mut received) = responding(OK).await;

    assert_eq!(attempt(&url).await, delivered("thanks"));

    let request = received.try_recv().unwrap();
    assert!(request.head.starts_with("POST /hook HTTP/1.1\r\n"));
    assert_eq!(
        request.body,
        br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.completed"}}"#
    );
    assert_eq!(request.header("Content-Type"), Some("application/json"));
    assert_eq!(
        request.header("User-Agent"),
        Some("webhook-dispatcher/0.1.0")
    );
    assert_eq!(
        request.header("X-Service-Signature"),
        Some("2MdpjA/aQ+zWZL9t7Fmq0fqrTN0YQ43ATm7S1brTk4Y=")
    );
    assert_eq!(
        request.header("Webhook-Id"),
        Some("01932e5c-9f4a-7000-8000-000000000001")
    );
    let mut headers = HeaderMap::new();
    for line in request.head.lines().filter(|line| line.contains(": ")) {
        let (name, value) = line.split_once(": ").unwrap();
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    Webhook::new(SECRET)
        .unwrap()
        .verify(&request.body, &headers)
        .unwrap();
}

#[tokio::test]
async fn the_signature_header_contains_the_platform_name() {
    let (url, mut received) = responding(OK).await;

    let outcome = attempt_with(|config| config.platform_name = "Coop".to_owned(), &url).await;

    assert_eq!(outcome, delivered("thanks"));
    let request = received.try_recv().unwrap();
    assert_eq!(
        request.header("X-Coop-Signature"),
        Some("2MdpjA/aQ+zWZL9t7Fmq0fqrTN0YQ43ATm7S1brTk4Y=")
    );
    assert!(!request.head.contains("X-Service-Signature"));
}

#[tokio::test]
async fn every_status_but_2xx_is_a_failure_with_its_status_and_body() {
    for (response, status, text, retry_after) in [
        (
            "410 Gone\r\ncontent-length: 4\r\n\r\ngone",
            410,
            "gone",
            None,
        ),
        ("500 Oops\r\ncontent-length: 0\r\n\r\n", 500, "", None),
        (
            "503 Busy\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
            503,
            "",
            Some(120),
        ),
        ("304 Not Modified\r\n\r\n", 304, "", None),
        (
            "101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            101,
            "",
            None,
        ),
    ] {
        let (url, _received) = responding(format!("HTTP/1.1 {response}")).await;

        let outcome = attempt(&url).await;

        let expected = Outcome {
            response_body: text.to_owned(),
            retry_after: retry_after.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
            ..failed(Failure::Status, Some(status))
        };
        assert_eq!(outcome, expected, "{response}");
    }
}

#[tokio::test]
async fn every_2xx_is_a_success() {
    for status in [200, 201, 202, 204, 299] {
        let response = format!("HTTP/1.1 {status} Fine\r\ncontent-length: 0\r\n\r\n");
        let (url, _received) = responding(response).await;
        let expected = outcome(Failure::Unspecified, Some(status));
        assert_eq!(attempt(&url).await, expected);
    }
}

#[tokio::test]
async fn a_connection_is_reused_for_the_next_notification() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let addr = crate::harness::receiver(|number, mut connection| async move {
        while connection.read_request().await.is_some() {
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            connection.write(response.as_bytes()).await;
        }
    })
    .await;

    for number in 1..=3 {
        let url = format!("http://{addr}/");
        stream.send(vec![notification(number, &url)]).await;
        let outcome = stream.next_outcome().await;
        assert_eq!(outcome.response_body, "0");
        stream.acknowledge(&outcome);
    }

    dispatcher.shut_down_with(stream).await;
}

/// All webhooks may have the same host.
#[tokio::test]
async fn all_connections_in_use_at_once_are_reused() {
    const CONNECTIONS: u8 = 128;
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    // No request gets a response before all have arrived.
    let all = Arc::new(Barrier::new(CONNECTIONS.into()));
    let addr = crate::harness::receiver(move |number, mut connection| {
        let all = Arc::clone(&all);
        async move {
            while connection.read_request().await.is_some() {
                all.wait().await;
                let number = number.to_string();
                let length = number.len();
                let response =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{number}");
                connection.write(response.as_bytes()).await;
            }
        }
    })
    .await;

    let url = format!("http://{addr}/");
    let mut rounds = Vec::new();
    for _ in 0..2 {
        let notifications = (0..CONNECTIONS).map(|number| notification(number, &url));
        stream.send(notifications.collect()).await;
        let outcomes = with_timeout(async {
            let mut outcomes = Vec::new();
            while outcomes.len() < usize::from(CONNECTIONS) {
                outcomes.extend(stream.next_report().await);
            }
            outcomes
        })
        .await;
        for outcome in &outcomes {
            stream.acknowledge(outcome);
        }
        let connections = outcomes.into_iter().map(|outcome| outcome.response_body);
        rounds.push(connections.collect::<BTreeSet<_>>());
    }

    assert_eq!(rounds[0].len(), usize::from(CONNECTIONS));
    // A connection may return to the pool after the next request needs one.
    let new = rounds[1].difference(&rounds[0]).count();
    assert!(
        new < usize::from(CONNECTIONS) / 4,
        "{new} connections were opened again"
    );
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_notification_that_cannot_be_signed_is_not_sent() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, mut received) = responding(OK).await;
    let mut unsigned = notification(1, &url);
    unsigned.secrets.clear();

    stream.send(vec![unsigned]).await;
    let outcome = stream.next_outcome().await;

    assert_eq!(outcome.failure(), Failure::Protocol);
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
    assert!(received.try_recv().is_err());
}
