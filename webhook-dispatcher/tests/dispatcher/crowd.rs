//! A crowd of receivers that never answer.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use proto::{Notification, outcome::Failure};

use crate::harness::{Dispatcher, FakeCore, OK, answering, config, notification, receiver};

/// The dispatcher's places, and how many of them the crowd has: core leaves the rest to others.
const PLACES: u32 = 64;
const OF_THE_CROWD: usize = 48;
const CROWD: usize = 1000;

fn numbered(number: usize, url: &str) -> Notification {
    Notification {
        name: format!("notifications/01932e5c-9f4a-7000-8000-{number:012x}"),
        ..notification(0, url)
    }
}

/// It takes no more sockets than it has places, and who answers is told of all meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_hang_take_no_more_than_their_places_and_hold_up_nobody() {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&webhook_dispatcher::Config {
        max_in_flight: std::num::NonZeroU32::new(PLACES).unwrap(),
        send_timeout: Duration::from_millis(500),
        ..config(&[&core])
    });
    let mut stream = core.stream().await;
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let addr = receiver(move |_, mut connection| {
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        async move {
            most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            connection.closed().await;
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let hanging = format!("http://{addr}/");
    let (healthy, _received) = answering(OK).await;

    let mut crowd = (0..CROWD).map(|number| numbered(number, &hanging));
    let mut others = (CROWD..).map(|number| numbered(number, &healthy));
    let mut of_the_crowd = HashSet::new();
    stream.send(others.by_ref().take(1).collect()).await;
    let first: Vec<_> = crowd.by_ref().take(OF_THE_CROWD).collect();
    of_the_crowd.extend(first.iter().map(|notification| notification.name.clone()));
    stream.send(first).await;

    let (mut ended, mut answered, mut failed) = (0, 0, 0);
    while ended < CROWD {
        let request = stream.next_request().await.unwrap();
        let mut next = Vec::new();
        for outcome in &request.outcomes {
            stream.record(outcome).await;
            if of_the_crowd.remove(&outcome.name) {
                assert_eq!(outcome.failure(), Failure::Timeout);
                ended += 1;
                next.extend(crowd.next());
            } else {
                match outcome.failure() {
                    Failure::Unspecified => answered += 1,
                    _ => failed += 1,
                }
                next.extend(others.next());
            }
        }
        let hanging = next.iter().filter(|next| next.url == hanging);
        of_the_crowd.extend(hanging.map(|next| next.name.clone()));
        if !next.is_empty() {
            stream.send(next).await;
        }
    }

    // Had each waited for one that hangs, there would be twenty.
    assert!(answered > CROWD / 10, "{answered} of {CROWD}");
    assert_eq!(failed, 0);
    // A closed one may be seen a little after the next is open.
    let most = peak.load(Ordering::SeqCst);
    assert!(most <= PLACES as usize * 2, "{most}");
    drop(stream);
    dispatcher.shut_down();
}
