//! Graceful shutdown: sends in flight are completed, reported and acknowledged; none are started.

use proto::{Notification, Outcome, outcome::Failure};

use crate::harness::{
    Dispatcher, FakeCore, GatedReceiver, capacity, config, config_with_limit, failed, notification,
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

/// Accepting more of a hanging receiver's backlog would delay the shutdown by a timeout each time.
#[tokio::test]
async fn notifications_received_after_shutdown_are_returned() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config_with_limit(&core, 4));
    let mut stream = core.stream().await;
    let mut receiver = GatedReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(capacity(4)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, None);
    let returned = Notification {
        lease_token: "lease-2".to_owned(),
        ..notification(1, &receiver.url)
    };
    stream.send(vec![returned]).await;

    let outcome = core.reports.next_outcome().await;
    let not_sent = Outcome {
        lease_token: "lease-2".to_owned(),
        ..failed(Failure::NotSent, None)
    };
    assert_eq!(outcome, not_sent);
    core.reports.acknowledge(&outcome);
    receiver.permits.add_permits(2);
    let outcome = core.reports.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    core.reports.acknowledge(&outcome);
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
