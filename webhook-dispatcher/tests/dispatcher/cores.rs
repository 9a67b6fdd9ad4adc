//! Several cores of one platform, of which one stops: outcomes of its notifications are reported to
//! another core, since leases are common to all cores.

use std::{
    iter,
    net::Ipv4Addr,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::harness::{
    CoreStream, Dispatcher, FakeCore, GatedReceiver, NameServer, OK, capacity, config,
    in_isolated_network, notification, responding, sample,
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

/// The client that asked for the test send waits for a response of that core.
#[tokio::test]
async fn a_test_send_whose_report_fails_is_reported_again_and_only_to_its_own_core() {
    let Platform {
        cores: [own, other],
        dispatcher,
        streams: [mut stream, mut of_other],
    } = Platform::start().await;
    let (url, mut received) = responding(OK).await;
    stream.send(vec![sample(1, &url)]).await;
    let mut failing = own.reports.clone();
    let reported = failing.next_outcome().await;

    drop(failing);

    assert_eq!(stream.next_outcome().await, reported);
    stream.acknowledge(&reported);
    dispatcher.shut_down();
    stream.remaining_requests().await;
    of_other.remaining_requests().await;
    drop((stream, of_other));
    dispatcher.exited().await;
    assert!(other.reports.is_empty().await);
    assert!(received.try_recv().is_ok());
    assert!(received.try_recv().is_err(), "it was sent once");
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

#[tokio::test]
async fn a_shutdown_does_not_wait_for_the_outcome_of_a_test_send_whose_core_is_gone() {
    let Platform {
        cores: [stopped, other],
        dispatcher,
        streams: [broken, mut stream],
    } = Platform::start().await;
    let mut receiver = GatedReceiver::start().await;
    broken.send(vec![sample(1, &receiver.url)]).await;
    receiver.next_request_arrived().await;
    stopped.stop([broken]).await;

    let started = Instant::now();
    dispatcher.shut_down();
    stream.remaining_requests().await;
    drop(stream);
    receiver.permits.add_permits(1);

    dispatcher.exited().await;
    // Well below the 25 s that the caller of a test send waits.
    assert!(started.elapsed().as_secs() < 10);
    assert!(other.reports.is_empty().await);
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

/// The cores are the addresses of one host name. The dispatcher finds each change by its next DNS
/// lookup.
#[tokio::test]
async fn a_core_joins_leaves_and_returns_while_notifications_are_in_flight() {
    in_isolated_network(async {
        let [first_addr, second_addr] = [2, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
        let cores = Arc::new(Mutex::new(vec![first_addr]));
        let current = Arc::clone(&cores);
        let answers = iter::repeat_with(move || current.lock().unwrap().clone());
        let _server = NameServer::start(answers).await;
        let mut first = FakeCore::start_at((first_addr, 50051).into()).await;
        let mut second = FakeCore::start_at((second_addr, 50051).into()).await;
        let mut config = webhook_dispatcher::Config {
            core_urls: vec!["http://cores.example:50051".parse().unwrap()],
            max_in_flight: NonZeroU32::new(8).unwrap(),
            // The receiver responds after two lookups.
            send_timeout: Duration::from_secs(45),
            ..config(&[])
        };
        config.core.allow_plaintext_core = true;
        let dispatcher = Dispatcher::start(&config);
        let mut leaving = first.stream().await;
        assert_eq!(leaving.next_request().await, Some(capacity(8)));

        *cores.lock().unwrap() = vec![first_addr, second_addr];
        let mut stream = second.stream().await;
        assert_eq!(stream.next_request().await, Some(capacity(4)));
        let mut receiver = GatedReceiver::start().await;
        leaving.send(vec![notification(1, &receiver.url)]).await;
        receiver.next_request_arrived().await;

        *cores.lock().unwrap() = vec![second_addr];
        assert_eq!(leaving.remaining_requests().await, []);
        drop(leaving);
        assert_eq!(stream.next_request().await, Some(capacity(4)));

        *cores.lock().unwrap() = vec![first_addr, second_addr];
        let mut returned = first.stream().await;
        assert_eq!(returned.next_request().await, Some(capacity(4)));
        receiver.permits.add_permits(1);
        let outcome = returned.next_outcome().await;
        assert_eq!(outcome.lease_token, "lease-1");
        returned.acknowledge(&outcome);

        // The first core's old session ends now. It must not remove the new one's connection.
        for number in 2..6 {
            let (url, _received) = responding(OK).await;
            returned.send(vec![notification(number, &url)]).await;
            let outcome = returned.next_outcome().await;
            assert_eq!(outcome.lease_token, format!("lease-{number}"));
            returned.acknowledge(&outcome);
        }

        dispatcher.shut_down();
        returned.remaining_requests().await;
        stream.remaining_requests().await;
        drop((returned, stream));
        dispatcher.exited().await;
        assert!(second.reports.is_empty().await, "each core got its own");
    })
    .await;
}
