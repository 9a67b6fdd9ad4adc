//! Several cores of one platform, of which one goes away: what is held of it is reported to
//! another, since their leases are the same.

use std::{num::NonZeroU32, time::Instant};

use crate::harness::{
    CoreStream, Dispatcher, FakeCore, OK, PatientReceiver, answering, config, notification,
};

/// Two cores, a dispatcher that may hold a few of each, and its streams to them.
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
async fn what_a_core_did_not_confirm_before_it_went_is_reported_to_another() {
    let Platform {
        cores: [gone, _other],
        dispatcher,
        streams: [mut broken, mut stream],
    } = Platform::start().await;
    let (url, mut received) = answering(OK).await;
    broken.send(vec![notification(1, &url)]).await;
    let reported = broken.next_outcome().await;

    gone.end([broken]).await;

    assert_eq!(stream.next_outcome().await, reported);
    stream.record(&reported).await;
    dispatcher.shut_down_with(stream).await;
    assert!(received.recv().await.is_some());
    assert!(received.try_recv().is_err(), "it was sent once");
}

#[tokio::test]
async fn a_send_that_ends_after_its_core_is_reported_to_another() {
    let Platform {
        cores: [gone, _other],
        dispatcher,
        streams: [broken, mut stream],
    } = Platform::start().await;
    let mut receiver = PatientReceiver::start().await;
    broken.send(vec![notification(1, &receiver.url)]).await;
    receiver.request_arrived().await;

    gone.end([broken]).await;
    receiver.permits.add_permits(1);

    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    stream.record(&outcome).await;
    dispatcher.shut_down_with(stream).await;
}

/// Nor is it reported twice: whoever has taken it has it.
#[tokio::test]
async fn what_another_core_confirmed_is_forgotten() {
    let Platform {
        cores: [mut gone, _other],
        dispatcher,
        streams: [mut broken, mut stream],
    } = Platform::start().await;
    let (url, _received) = answering(OK).await;
    broken.send(vec![notification(1, &url)]).await;
    broken.next_outcome().await;
    // The other is told before this one is there again.
    broken.break_off().await;
    let outcome = stream.next_outcome().await;
    stream.record(&outcome).await;

    let mut again = gone.stream().await;
    dispatcher.shut_down();

    let mut told = Vec::new();
    while let Some(request) = again.next_request().await {
        told.extend(request.outcomes);
    }
    assert_eq!(told, []);
    drop(again);
    while stream.next_request().await.is_some() {}
    drop(stream);
    dispatcher.ended().await;
}

/// The other exchange has finished by then: it comes back for what is left.
#[tokio::test]
async fn a_shutdown_reports_what_is_held_of_a_core_that_is_gone_and_ends_at_once() {
    let Platform {
        cores: [gone, mut other],
        dispatcher,
        streams: [broken, mut stream],
    } = Platform::start().await;
    let mut receiver = PatientReceiver::start().await;
    broken.send(vec![notification(1, &receiver.url)]).await;
    receiver.request_arrived().await;
    gone.end([broken]).await;

    dispatcher.shut_down();
    while let Some(request) = stream.next_request().await {
        assert_eq!(request.outcomes, []);
    }
    drop(stream);
    receiver.permits.add_permits(1);

    let mut stream = other.stream().await;
    let outcome = stream.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    stream.record(&outcome).await;
    let confirmed = Instant::now();
    while stream.next_request().await.is_some() {}
    drop(stream);
    dispatcher.ended().await;
    // Far less than the 30 s after which it would have given up.
    assert!(confirmed.elapsed().as_secs() < 10);
}

/// As one whose database is away: the other may have another way to it.
#[tokio::test]
async fn a_shutdown_leaves_a_core_that_confirms_nothing_for_another() {
    let Platform {
        cores: [_silent, mut other],
        dispatcher,
        streams: [mut silent, mut stream],
    } = Platform::start().await;
    let (url, _received) = answering(OK).await;
    silent.send(vec![notification(1, &url)]).await;
    let reported = silent.next_outcome().await;

    dispatcher.shut_down();
    while stream.next_request().await.is_some() {}
    drop(stream);
    while silent.next_request().await.is_some() {}

    let mut stream = other.stream().await;
    assert_eq!(stream.next_outcome().await, reported);
    stream.record(&reported).await;
    while stream.next_request().await.is_some() {}
    drop((stream, silent));
    dispatcher.ended().await;
}
