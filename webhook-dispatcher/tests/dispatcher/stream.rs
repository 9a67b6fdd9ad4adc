//! The dispatcher's side of the stream protocol: credit, leases, reconnection.

use std::num::NonZeroU32;

use proto::IssueTokenRequest;

use crate::harness::{
    Dispatcher, FakeCore, GatedReceiver, OK, config, config_with_limit, credit, draining_request,
    notification, responding, with_timeout,
};

#[tokio::test]
async fn credit_is_the_limit_and_is_granted_again_with_the_outcome() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let mut stream = core.stream().await;
    let receiver = GatedReceiver::start().await;

    assert_eq!(stream.next_request().await, Some(credit(2)));
    stream
        .send(vec![
            notification(1, &receiver.url),
            notification(2, &receiver.url),
        ])
        .await;
    receiver.permits.add_permits(1);
    let request = stream.next_request().await.unwrap();

    assert_eq!((request.credit, request.outcomes.len()), (1, 1));
    stream.acknowledge(&request.outcomes[0]).await;
    receiver.permits.add_permits(1);
    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (1, 1));
    stream.acknowledge(&request.outcomes[0]).await;

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, Some(draining_request()));
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.exited().await;
}

#[tokio::test]
async fn a_stream_that_exceeds_its_credit_is_closed() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 1));
    let stream = core.stream().await;
    let (url, mut received) = responding(OK).await;

    stream
        .send(vec![notification(1, &url), notification(2, &url)])
        .await;

    let mut next = core.stream().await;
    assert_eq!(next.next_request().await, Some(credit(1)));
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
    stream.acknowledge(&outcome).await;
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_send_outlives_its_stream_and_is_reported_on_the_next() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    stream.fail().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_request().await, Some(credit(1)));
    receiver.permits.add_permits(1);
    let outcome = next.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    next.acknowledge(&outcome).await;
    dispatcher.shut_down_with(next).await;
}

/// The dispatcher may notice that it cannot report any more before it has read everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_core_sends_before_it_closes_a_stream_is_sent() {
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
async fn an_unacknowledged_outcome_is_reported_again_on_the_next_stream() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, mut received) = responding(OK).await;
    stream.send(vec![notification(1, &url)]).await;
    let reported = stream.next_outcome().await;

    stream.fail().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_outcome().await, reported);
    next.acknowledge(&reported).await;
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
        assert_eq!(core.stream().await.next_request().await, Some(credit(5)));
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
