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
    stream.acknowledge(&reported);
    dispatcher.shut_down_with(stream).await;
    assert!(received.try_recv().is_ok());
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
    stream.acknowledge(&outcome);
    dispatcher.shut_down_with(stream).await;
}

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
    stream.acknowledge(&outcome);

    let mut reopened = failing.stream().await;
    dispatcher.shut_down();

    reopened.remaining_requests().await;
    stream.remaining_requests().await;
    drop((reopened, stream));
    dispatcher.exited().await;
    assert!(failing.reports.is_empty().await);
}

/// When the send completes, no stream is open any more.
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
    stream.remaining_requests().await;
    drop(stream);
    receiver.permits.add_permits(1);

    let outcome = other.reports.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    other.reports.acknowledge(&outcome);
    let acknowledged = Instant::now();
    dispatcher.exited().await;
    // Well below the shutdown timeout of 30 s.
    assert!(acknowledged.elapsed().as_secs() < 10);
}

/// A core without a connection to the database acknowledges nothing, for example.
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
    stream.remaining_requests().await;
    drop(stream);
    unresponsive.remaining_requests().await;

    assert_eq!(other.reports.next_outcome().await, reported);
    other.reports.acknowledge(&reported);
    drop(unresponsive);
    dispatcher.exited().await;
}
