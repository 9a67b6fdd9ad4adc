//! Several cores of one platform, of which one stops: outcomes of its notifications are reported to
//! another core, since leases are common to all cores.

use std::{num::NonZeroU32, time::Instant};

use crate::harness::{
    CoreStream, Dispatcher, FakeCore, GatedReceiver, OK, config, notification, responding,
};

/// Two cores, a dispatcher, and its streams to them.
struct Platform {
    cores: [FakeCore; 2],
    dispatcher: Dispatcher,
    streams: [CoreStream; 2],
}

impl Platform {
    async fn start() -> Self {
        let mut cores = [FakeCore::start().await, FakeCore::start().await];
        let [one, other] = &mut cores;
        let dispatcher = Dispatcher::start(&webhook_dispatcher::Config {
            max_in_flight: NonZeroU32::new(8).unwrap(),
            ..config(&[one, other])
        });
        let streams = [one.stream().await, other.stream().await];
        Self {
            cores,
            dispatcher,
            streams,
        }
    }
}

#[tokio::test]
async fn outcomes_a_core_did_not_acknowledge_before_it_stopped_are_reported_to_another() {
    let Platform {
        cores: [stopped, _other],
        dispatcher,
        streams: [mut broken, mut stream],
    } = Platform::start().await;
    let (url, mut received) = responding(OK).await;
    broken.send(vec![notification(1, &url)]).await;
    let reported = broken.next_outcome().await;

    stopped.stop([broken]).await;

    assert_eq!(stream.next_outcome().await, reported);
    stream.acknowledge(&reported).await;
    dispatcher.shut_down_with(stream).await;
    assert!(received.recv().await.is_some());
    assert!(received.try_recv().is_err(), "it was sent once");
}

#[tokio::test]
async fn a_send_that_completes_after_its_core_stopped_is_reported_to_another() {
    let Platform {
        cores: [stopped, _other],
        dispatcher,
        streams: [broken, mut stream],
    } = Platform::start().await;
    let mut receiver = GatedReceiver::start().await;
    broken.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;

    stopped.stop([broken]).await;
    receiver.permits.add_permits(1);

    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    stream.acknowledge(&outcome).await;
    dispatcher.shut_down_with(stream).await;
}

/// An acknowledged outcome is not reported to another core again.
#[tokio::test]
async fn an_outcome_acknowledged_by_another_core_is_not_reported_again() {
    let Platform {
        cores: [mut failing, _other],
        dispatcher,
        streams: [mut broken, mut stream],
    } = Platform::start().await;
    let (url, _received) = responding(OK).await;
    broken.send(vec![notification(1, &url)]).await;
    broken.next_outcome().await;
    // The other core acknowledges it before this one is reconnected.
    broken.fail().await;
    let outcome = stream.next_outcome().await;
    stream.acknowledge(&outcome).await;

    let mut reopened = failing.stream().await;
    dispatcher.shut_down();

    let mut reported = Vec::new();
    while let Some(request) = reopened.next_request().await {
        reported.extend(request.outcomes);
    }
    assert_eq!(reported, []);
    drop(reopened);
    while stream.next_request().await.is_some() {}
    drop(stream);
    dispatcher.exited().await;
}

/// The session with the other core has drained by then: it opens another stream.
#[tokio::test]
async fn a_shutdown_reports_outcomes_of_a_stopped_core_to_another_and_exits_promptly() {
    let Platform {
        cores: [stopped, mut other],
        dispatcher,
        streams: [broken, mut stream],
    } = Platform::start().await;
    let mut receiver = GatedReceiver::start().await;
    broken.send(vec![notification(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;
    stopped.stop([broken]).await;

    dispatcher.shut_down();
    while let Some(request) = stream.next_request().await {
        assert_eq!(request.outcomes, []);
    }
    drop(stream);
    receiver.permits.add_permits(1);

    let mut stream = other.stream().await;
    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    stream.acknowledge(&outcome).await;
    let acknowledged = Instant::now();
    while stream.next_request().await.is_some() {}
    drop(stream);
    dispatcher.exited().await;
    // Well below the shutdown timeout of 30 s.
    assert!(acknowledged.elapsed().as_secs() < 10);
}

/// Such as a core without a connection to the database.
#[tokio::test]
async fn a_shutdown_reports_to_another_core_if_one_acknowledges_nothing() {
    let Platform {
        cores: [_unresponsive, mut other],
        dispatcher,
        streams: [mut unresponsive, mut stream],
    } = Platform::start().await;
    let (url, _received) = responding(OK).await;
    unresponsive.send(vec![notification(1, &url)]).await;
    let reported = unresponsive.next_outcome().await;

    dispatcher.shut_down();
    while stream.next_request().await.is_some() {}
    drop(stream);
    while unresponsive.next_request().await.is_some() {}

    let mut stream = other.stream().await;
    assert_eq!(stream.next_outcome().await, reported);
    stream.acknowledge(&reported).await;
    while stream.next_request().await.is_some() {}
    drop((stream, unresponsive));
    dispatcher.exited().await;
}
