//! Tests of webhooks: how far a sample comes, and that it goes nowhere else than notifications do.

use proto::{Outcome, TestOutcome, outcome::Failure};

use crate::harness::{
    Canary, CoreStream, Dispatcher, FakeCore, OK, answering, briefly, config, delivered, failed,
    notification, receiver,
};

/// What comes of a sample, without its durations, and which of them there are: DNS, connecting,
/// TLS.
pub(crate) async fn test_with(
    configure: impl FnOnce(&mut webhook_dispatcher::Config),
    url: &str,
) -> (TestOutcome, [bool; 3]) {
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    configure(&mut config);
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    stream.send_test(notification(1, url)).await;
    let told = next_told(&mut stream).await;

    dispatcher.shut_down_with(stream).await;
    let passed = [&told.dns, &told.connect, &told.tls].map(Option::is_some);
    let outcome = told.outcome.map(|outcome| Outcome {
        duration: None,
        ..outcome
    });
    let told = TestOutcome {
        outcome,
        detail: told.detail,
        tls_version: told.tls_version,
        ..TestOutcome::default()
    };
    (told, passed)
}

async fn next_told(stream: &mut CoreStream) -> TestOutcome {
    loop {
        let request = stream.next_request().await.unwrap();
        if let [told] = &request.test_outcomes[..] {
            assert_eq!(request.outcomes, []);
            return told.clone();
        }
    }
}

#[tokio::test]
async fn a_sample_is_sent_and_told_without_credit_or_confirmation() {
    let (url, mut received) = answering(OK).await;

    let (told, passed) = test_with(|_| {}, &url).await;

    let expected = TestOutcome {
        outcome: Some(delivered("thanks")),
        ..TestOutcome::default()
    };
    assert_eq!(told, expected);
    assert_eq!(passed, [true, true, false]);
    let sample = received.recv().await.unwrap();
    assert!(sample.header("Webhook-Signature").is_some());
    assert!(received.try_recv().is_err());
}

/// The guard holds for it as for any notification.
#[tokio::test]
async fn a_sample_is_not_sent_to_a_private_address() {
    let canary = Canary::start().await;
    let port = canary.addr().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let url = format!("http://{host}:{port}/");

        let (told, passed) = test_with(|config| config.allow_networks.clear(), &url).await;

        let refused = failed(Failure::AddressRefused, None);
        assert_eq!(told.outcome, Some(refused), "{host}");
        assert!(told.detail.contains("public internet"), "{}", told.detail);
        assert_eq!(passed, [false; 3], "{host}");
    }
    assert!(canary.untouched().await);
}

#[tokio::test]
async fn a_sample_is_given_up_at_the_deadline() {
    let addr = receiver(|_, mut connection| async move {
        connection.read_request().await;
        connection.closed().await;
    })
    .await;

    let (told, passed) = test_with(briefly, &format!("http://{addr}/")).await;

    let expected = TestOutcome {
        outcome: Some(failed(Failure::Timeout, None)),
        detail: "not over within 1s".to_owned(),
        ..TestOutcome::default()
    };
    assert_eq!(told, expected);
    assert_eq!(passed, [true, true, false]);
}

/// A clean end loses no outcome that somebody waits for.
#[tokio::test]
async fn a_shutdown_tells_what_came_of_samples_before_it_says_that_it_has_finished() {
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
        .send_test(notification(1, &format!("http://{addr}/")))
        .await;
    arrivals.recv().await.unwrap();

    dispatcher.shut_down();
    permits.add_permits(1);

    let told = next_told(&mut stream).await;
    assert_eq!(told.outcome.unwrap().status, Some(200));
    assert!(stream.next_request().await.unwrap().finished);
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.ended().await;
}
