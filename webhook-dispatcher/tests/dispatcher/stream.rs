//! The dispatcher's half of the stream's contract: credit, leases, reconnection, the clean end.

use std::{num::NonZeroU32, sync::Arc};

use proto::{IssueTokenRequest, StreamRequest};
use tokio::sync::{
    Semaphore,
    mpsc::{self, UnboundedReceiver},
};

use crate::harness::{Dispatcher, FakeCore, OK, answering, config, notification, receiver, soon};

/// A receiver that tells of each request and answers it when a permit is added.
pub(crate) struct PatientReceiver {
    pub url: String,
    pub arrived: UnboundedReceiver<()>,
    pub permits: Arc<Semaphore>,
}

impl PatientReceiver {
    pub(crate) async fn start() -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&permits);
        let (arrived_tx, arrived) = mpsc::unbounded_channel();
        let addr = receiver(move |_, mut connection| {
            let gate = Arc::clone(&gate);
            let arrived = arrived_tx.clone();
            async move {
                while connection.read_request().await.is_some() {
                    // The test may not be interested.
                    let _ = arrived.send(());
                    gate.acquire().await.unwrap().forget();
                    connection.write(OK).await;
                }
            }
        })
        .await;
        Self {
            url: format!("http://{addr}/"),
            arrived,
            permits,
        }
    }

    pub(crate) async fn request_arrived(&mut self) {
        soon(self.arrived.recv()).await.unwrap();
    }
}

fn credit(credit: u32) -> StreamRequest {
    StreamRequest {
        credit,
        ..StreamRequest::default()
    }
}

fn finished() -> StreamRequest {
    StreamRequest {
        finished: true,
        ..StreamRequest::default()
    }
}

fn limited(core: &FakeCore, max_in_flight: u32) -> webhook_dispatcher::Config {
    webhook_dispatcher::Config {
        max_in_flight: NonZeroU32::new(max_in_flight).unwrap(),
        ..config(&[core])
    }
}

#[tokio::test]
async fn credit_is_what_fits_and_returns_with_the_outcome() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 2));
    let mut stream = core.stream().await;
    let receiver = PatientReceiver::start().await;

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
    stream.record(&request.outcomes[0]).await;
    receiver.permits.add_permits(1);
    let request = stream.next_request().await.unwrap();
    assert_eq!((request.credit, request.outcomes.len()), (1, 1));
    stream.record(&request.outcomes[0]).await;

    dispatcher.shut_down();
    assert_eq!(stream.next_request().await, Some(finished()));
    assert_eq!(stream.next_request().await, None);
    drop(stream);
    dispatcher.ended().await;
}

#[tokio::test]
async fn a_core_that_exceeds_its_credit_is_left() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 1));
    let stream = core.stream().await;
    let (url, mut received) = answering(OK).await;

    stream
        .send(vec![notification(1, &url), notification(2, &url)])
        .await;

    let mut next = core.stream().await;
    assert_eq!(next.next_request().await, Some(credit(1)));
    assert!(received.try_recv().is_err());
    dispatcher.shut_down_with(next).await;
}

#[tokio::test]
async fn an_outcome_carries_the_lease_it_was_held_under() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, _received) = answering(OK).await;
    let mut again = notification(7, &url);
    again.lease_token = "second lease".to_owned();

    stream.send(vec![again.clone()]).await;
    let outcome = stream.next_outcome().await;

    assert_eq!(
        (outcome.name.as_str(), outcome.lease_token.as_str()),
        (again.name.as_str(), "second lease")
    );
    assert!(outcome.duration.is_some());
    stream.record(&outcome).await;
    dispatcher.shut_down_with(stream).await;
}

#[tokio::test]
async fn a_send_outlives_its_stream_and_is_reported_on_the_next() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&limited(&core, 2));
    let stream = core.stream().await;
    let mut receiver = PatientReceiver::start().await;
    stream.send(vec![notification(1, &receiver.url)]).await;
    receiver.request_arrived().await;

    stream.break_off().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_request().await, Some(credit(1)));
    receiver.permits.add_permits(1);
    let outcome = next.next_outcome().await;
    assert_eq!(outcome.lease_token, "lease-1");
    next.record(&outcome).await;
    dispatcher.shut_down_with(next).await;
}

#[tokio::test]
async fn an_unconfirmed_outcome_is_reported_again_on_the_next_stream() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&config(&[&core]));
    let mut stream = core.stream().await;
    let (url, mut received) = answering(OK).await;
    stream.send(vec![notification(1, &url)]).await;
    let reported = stream.next_outcome().await;

    stream.break_off().await;
    let mut next = core.stream().await;

    assert_eq!(next.next_outcome().await, reported);
    next.record(&reported).await;
    dispatcher.shut_down_with(next).await;
    assert!(received.recv().await.is_some());
    assert!(received.try_recv().is_err());
}

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
    dispatcher.ended().await;
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_again_when_it_is_refused() {
    let mut core = FakeCore::start_refusing("token-1").await;
    let dispatcher = Dispatcher::start(&config(&[&core]));

    let stream = core.stream().await;
    assert_eq!(stream.authorization, "Bearer token-2");
    stream.break_off().await;
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
