//! Graceful shutdown: what core has sent is sent, reported and acknowledged.

use crate::harness::{
    Dispatcher, FakeCore, GatedReceiver, OK, capacity, config, config_with_limit, notification,
    responding,
};

#[tokio::test]
async fn a_shutdown_completes_sends_in_flight_and_waits_for_acknowledgement() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 2));
    let mut stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(capacity(2)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    receiver.permits.add_permits(1);

    let outcome = core.reports.next_outcome().await;
    assert_eq!(
        (outcome.name, outcome.status),
        (notification(1, "").name, Some(200))
    );
    // The report is repeated.
    core.reports.fail_unanswered();
    let outcome = core.reports.next_outcome().await;
    core.reports.acknowledge(&outcome);
    dispatcher.exited().await;
}

#[tokio::test]
async fn notifications_received_after_shutdown_are_sent_before_the_end() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 4));
    let mut stream = core.stream().await;
    let (url, mut received) = responding(OK).await;
    assert_eq!(stream.next_request().await, Some(capacity(4)));
    // The stream is open once a notification has arrived.
    stream.send(vec![notification(1, &url)]).await;
    let first = core.reports.next_outcome().await;

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, None);
    stream.send(vec![notification(2, &url)]).await;
    core.reports.acknowledge(&first);

    let second = core.reports.next_outcome().await;
    assert_eq!(
        (&*second.lease_token, second.status),
        ("lease-2", Some(200))
    );
    core.reports.acknowledge(&second);
    drop(stream);
    dispatcher.exited().await;
    assert!(received.try_recv().is_ok() && received.try_recv().is_ok());
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
