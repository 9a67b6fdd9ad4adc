//! The dispatcher's side of the stream protocol: capacity, leases, reconnection.

use std::num::NonZeroU32;

use proto::IssueTokenRequest;

use crate::harness::{
    Dispatcher, FakeCore, GatedReceiver, OK, capacity, config, config_with_limit, notification,
    responding, with_timeout,
};

#[tokio::test]
async fn capacity_is_the_limit_and_is_granted_again_once_the_outcome_is_recorded() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let mut stream = core.stream().await;
    let receiver = GatedReceiver::start().await;

    assert_eq!(stream.next_request().await, Some(capacity(2)));
    stream
        .send(vec![
            notification(1, &receiver.url),
            notification(2, &receiver.url),
        ])
        .await;
    for _ in 0..2 {
        receiver.permits.add_permits(1);
        let outcome = stream.next_outcome().await;
        stream.acknowledge(&outcome);
        assert_eq!(stream.next_request().await, Some(capacity(1)));
    }

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.exited().await;
}

#[tokio::test]
async fn a_stream_that_exceeds_its_capacity_is_closed() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 1));
    let stream = core.stream().await;
    let (url, mut received) = responding(OK).await;

    stream
        .send(vec![notification(1, &url), notification(2, &url)])
        .await;

    let mut next = core.stream().await;
    assert_eq!(next.next_request().await, Some(capacity(1)));
    dispatcher.shut_down_with(next).await;
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn an_outcome_has_the_lease_token_of_its_notification() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, _received) = responding(OK).await;
    let mut resent = notification(7, &url);
    resent.lease_token = "second lease".to_owned();

    stream.send(vec![resent.clone()]).await;
    let outcome = stream.next_outcome().await;

    assert_eq!(
        (outcome.name.as_str(), outcome.lease_token.as_str()),
        (resent.name.as_str(), "second lease")
    );
    assert!(outcome.duration.is_some());
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_send_outlives_its_stream() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    stream.fail().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_request().await, Some(capacity(1)));
    receiver.permits.add_permits(1);
    let outcome = next.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    next.acknowledge(&outcome);
    dispatcher.shut_down_with(next).await;
}

/// The dispatcher may notice that it cannot grant capacity any more before it has read everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_that_arrive_before_core_closes_the_stream_are_sent() {
    const ROUNDS: u8 = 30;
    const PER_STREAM: u8 = 8;
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 1024));
    let (url, mut received) = responding(OK).await;

    for round in 0..ROUNDS {
        let stream = core.stream().await;
        for number in 0..PER_STREAM {
            stream.send(vec![notification(number, &url)]).await;
        }
        drop(stream);
        for number in 0..PER_STREAM {
            let next = with_timeout(received.recv()).await;
            assert!(next.is_some(), "round {round}, notification {number}");
        }
    }
    dispatcher.shut_down();
}

#[tokio::test]
async fn an_unacknowledged_outcome_is_reported_again() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, mut received) = responding(OK).await;
    stream.send(vec![notification(1, &url)]).await;
    let reported = stream.next_outcome().await;

    stream.fail().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_outcome().await, reported);
    next.acknowledge(&reported);
    dispatcher.shut_down_with(next).await;
    assert!(received.try_recv().is_ok());
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn the_limit_is_shared_between_cores() {
    let mut cores = [FakeCore::start().await, FakeCore::start().await];
    let [first, second] = &cores;
    let dispatcher = Dispatcher::start(&webhook_dispatcher::Config {
        max_in_flight: NonZeroU32::new(10).unwrap(),
        ..config(&[first, second])
    });

    for core in &mut cores {
        assert_eq!(core.stream().await.next_request().await, Some(capacity(5)));
    }

    dispatcher.shut_down();
    dispatcher.exited().await;
}

#[tokio::test]
async fn a_token_is_reused_and_requested_again_when_core_rejects_it() {
    let mut core = FakeCore::start_rejecting("token-1").await;
    let dispatcher = Dispatcher::start(&config(&[&core]));

    let stream = core.stream().await;
    assert_eq!(stream.authorization, "Bearer token-2");
    stream.fail().await;
    let stream = core.stream().await;
    assert_eq!(stream.authorization, "Bearer token-2");

    assert_eq!(
        core.token_request().await,
        IssueTokenRequest {
            api_key: "key".to_owned(),
            api_secret: "secret".to_owned(),
            scopes: vec!["notifications".to_owned()],
        }
    );
    dispatcher.shut_down_with(stream).await;
}

/// Core has not rejected it.
#[tokio::test]
async fn a_report_that_fails_does_not_renew_the_token() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    core.token_request().await;
    let (url, _received) = responding(OK).await;
    stream.send(vec![notification(1, &url)]).await;

    // Fails when it is dropped.
    core.reports.clone().next().await;

    let outcome = stream.next_outcome().await;
    assert!(!core.has_token_request());
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
}
