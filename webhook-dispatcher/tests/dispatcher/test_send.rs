//! Test sends: which phases a sample completes, and that it passes the same address guard as
//! notifications.

use proto::{Outcome, outcome::Failure};

use crate::harness::{
    Canary, Dispatcher, FakeCore, GatedReceiver, OK, config, config_with_limit, delivered, failed,
    notification, receiver, responding, sample, short_timeout, with_timeout,
};

/// Sends a sample. Returns its outcome without durations, and whether DNS, connect and TLS were
/// completed.
pub(crate) async fn test_with(
    configure: impl FnOnce(&mut webhook_dispatcher::Config),
    url: &str,
) -> (Outcome, [bool; 3]) {
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    configure(&mut config);
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    stream.send(vec![sample(1, url)]).await;
    let test = stream.next_outcome().await;
    stream.acknowledge(&test);

    dispatcher.shut_down_with(stream).await;
    let completed = [&test.dns, &test.connect, &test.tls].map(Option::is_some);
    let test = Outcome {
        duration: None,
        dns: None,
        connect: None,
        tls: None,
        ..test
    };
    (test, completed)
}

/// The outcome of the first sample, instead of the first notification.
pub(crate) fn test_send_outcome(outcome: Outcome) -> Outcome {
    Outcome {
        lease_token: sample(1, "").lease_token,
        ..outcome
    }
}

#[tokio::test]
async fn a_sample_is_sent_and_reported() {
    let (url, mut received) = responding(OK).await;

    let (test, completed) = test_with(|_| {}, &url).await;

    assert_eq!(test, test_send_outcome(delivered("thanks")));
    assert_eq!(completed, [true, true, false]);
    let sample = received.try_recv().unwrap();
    assert!(sample.header("Webhook-Signature").is_some());
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn a_sample_uses_no_capacity_and_is_sent_while_none_is_left() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 1));
    let mut stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;
    let (url, _received) = responding(OK).await;

    stream.send(vec![sample(2, &url)]).await;

    let test = stream.next_outcome().await;
    assert_eq!(
        (&test.name, test.status),
        (&sample(2, &url).name, Some(200))
    );
    stream.acknowledge(&test);
    receiver.permits.add_permits(1);
    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_sample_is_not_sent_to_a_private_address() {
    let canary = Canary::start().await;
    let port = canary.addr().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let url = format!("http://{host}:{port}/");

        let (test, completed) =
            test_with(|config| config.egress.allowed_networks.clear(), &url).await;

        assert!(test.detail.contains("public internet"), "{}", test.detail);
        let denied = Outcome {
            detail: test.detail.clone(),
            ..test_send_outcome(failed(Failure::AddressRefused, None))
        };
        assert_eq!(test, denied, "{host}");
        assert_eq!(completed, [false; 3], "{host}");
    }
    assert!(canary.has_no_connections().await);
}

#[tokio::test]
async fn a_sample_times_out() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection.closed().await;
    })
    .await;

    let (test, completed) = test_with(short_timeout, &format!("http://{addr}/")).await;

    let expected = Outcome {
        detail: "no response within 1s".to_owned(),
        ..test_send_outcome(failed(Failure::Timeout, None))
    };
    assert_eq!(test, expected);
    assert_eq!(completed, [true, true, false]);
}

/// A shutdown loses no outcome of a test send.
#[tokio::test]
async fn a_shutdown_reports_test_sends() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let permits = std::sync::Arc::clone(&gate);
    let addr = receiver(move |_, mut connection| {
        let (arrived, gate) = (arrived.clone(), std::sync::Arc::clone(&gate));
        async move {
            connection.read_request().await;
            arrived.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            connection.write(OK).await;
        }
    })
    .await;
    stream
        .send(vec![sample(1, &format!("http://{addr}/"))])
        .await;
    with_timeout(arrivals.recv()).await.unwrap();

    dispatcher.shut_down();
    permits.add_permits(1);

    let test = stream.next_outcome().await;
    assert_eq!(test.status, Some(200));
    stream.acknowledge(&test);
    dispatcher.shut_down_with(stream).await;
}
