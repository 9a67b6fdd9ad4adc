//! Graceful shutdown: sends in flight are completed, reported and acknowledged; none are started.

use crate::harness::{
    Dispatcher, FakeCore, GatedReceiver, OK, config, config_with_limit, credit, draining_request,
    notification, responding,
};

#[tokio::test]
async fn a_shutdown_completes_sends_in_flight_and_waits_for_acknowledgement() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let mut stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(credit(2)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    dispatcher.shut_down();
    receiver.permits.add_permits(1);

    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert_eq!(stream.next_request().await, Some(draining_request()));
    assert_eq!(stream.next_request().await, None);
    stream.acknowledge(&request.outcomes[0]).await;
    drop(stream);
    dispatcher.exited().await;
}

#[tokio::test]
async fn a_shutdown_reports_outcomes_even_if_the_stream_fails() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let mut stream = core.stream().await;
    let (url, _received) = responding(OK).await;
    stream.send(vec![notification(1, &url)]).await;
    let outcome = stream.next_outcome().await;

    dispatcher.shut_down();
    stream.fail().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_request().await, Some(credit(0)));
    assert_eq!(next.next_outcome().await, outcome);
    assert_eq!(next.next_request().await, Some(draining_request()));
    assert_eq!(next.next_request().await, None);
    next.acknowledge(&outcome).await;
    drop(next);
    dispatcher.exited().await;
}

/// Accepting more of a hanging receiver's backlog would delay the shutdown by a timeout each time.
#[tokio::test]
async fn notifications_received_after_shutdown_are_declined() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 4));
    let mut stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(credit(4)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    dispatcher.shut_down();
    // The outcome of a test send shows that the dispatcher has noticed the shutdown. It grants no
    // more credit then, but core may still use earlier credit.
    stream.send_test(notification(9, "not a url")).await;
    stream
        .requests_until(|request| !request.test_outcomes.is_empty())
        .await;
    stream.send(vec![notification(2, &receiver.url)]).await;
    receiver.permits.add_permits(2);

    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert_eq!(request.outcomes[0].lease_token, "lease-1");
    stream.acknowledge(&request.outcomes[0]).await;
    let request = stream.next_request().await.unwrap();
    assert_eq!(
        request,
        draining_request(),
        "a declined notification has no outcome"
    );
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.exited().await;
    assert!(receiver.arrived.try_recv().is_err());
}

#[tokio::test]
async fn a_shutdown_with_nothing_in_flight_needs_no_core() {
    let core = FakeCore::start().await;
    let mut unreachable = config(&[&core]);
    unreachable.core_urls = vec!["http://127.0.0.1:1".parse().unwrap()];
    let dispatcher = Dispatcher::start(&unreachable);

    dispatcher.shut_down();

    dispatcher.exited().await;
}
