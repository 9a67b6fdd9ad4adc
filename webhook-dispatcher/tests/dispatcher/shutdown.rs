//! The clean end: what is held is finished, reported and confirmed, and nothing more is begun.

use crate::harness::{
    Dispatcher, FakeCore, OK, PatientReceiver, answering, config, credit, finished, limited,
    notification,
};

#[tokio::test]
async fn a_shutdown_finishes_what_is_held_and_waits_for_its_confirmation() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 2));
    let mut stream = core.stream().await;
    let mut receiver = PatientReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(credit(2)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.request_arrived().await;

    dispatcher.shut_down();
    receiver.permits.add_permits(1);

    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert_eq!(stream.next_request().await, Some(finished()));
    assert_eq!(stream.next_request().await, None);
    stream.record(&request.outcomes[0]).await;
    drop(stream);
    dispatcher.ended().await;
}

#[tokio::test]
async fn a_shutdown_reports_even_if_the_stream_breaks_meanwhile() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 2));
    let mut stream = core.stream().await;
    let (url, _received) = answering(OK).await;
    stream.send(vec![notification(1, &url)]).await;
    let outcome = stream.next_outcome().await;

    dispatcher.shut_down();
    stream.break_off().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_request().await, Some(credit(0)));
    assert_eq!(next.next_outcome().await, outcome);
    assert_eq!(next.next_request().await, Some(finished()));
    assert_eq!(next.next_request().await, None);
    next.record(&outcome).await;
    drop(next);
    dispatcher.ended().await;
}

/// A receiver that hangs, and a backlog for it: one after the other would be sent, and the end
/// never come.
#[tokio::test]
async fn what_comes_after_the_shutdown_is_not_sent_but_given_back() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 4));
    let mut stream = core.stream().await;
    let mut receiver = PatientReceiver::start().await;
    assert_eq!(stream.next_request().await, Some(credit(4)));
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.request_arrived().await;

    dispatcher.shut_down();
    // It asks for nothing more from here on; what it asked for before may be on its way.
    stream.send_test(notification(9, "not a url")).await;
    while stream
        .next_request()
        .await
        .unwrap()
        .test_outcomes
        .is_empty()
    {}
    stream.send(vec![notification(2, &receiver.url)]).await;
    receiver.permits.add_permits(2);

    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (0, 1));
    assert_eq!(request.outcomes[0].lease_token, "lease-1");
    stream.record(&request.outcomes[0]).await;
    let request = stream.next_request().await.unwrap();
    assert_eq!(request, finished(), "what came after has no outcome");
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.ended().await;
    assert!(receiver.arrived.try_recv().is_err());
}

#[tokio::test]
async fn a_shutdown_with_nothing_held_needs_no_core() {
    let core = FakeCore::start().await;
    let mut unreachable = config(&[&core]);
    unreachable.core_urls = vec!["http://127.0.0.1:1".parse().unwrap()];
    let dispatcher = Dispatcher::start(&unreachable);

    dispatcher.shut_down();

    dispatcher.ended().await;
}
