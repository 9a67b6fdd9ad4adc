//! Many notifications to a receiver that never responds.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use proto::{Notification, outcome::Failure};

use crate::harness::{Dispatcher, FakeCore, OK, config, notification, receiver, responding};

/// The dispatcher's limit, and how much of it core gives to the hanging receiver: the rest is for
/// the healthy one.
const MAX_IN_FLIGHT: u32 = 64;
const MAX_HANGING_IN_FLIGHT: usize = 48;
/// Notifications to the hanging receiver.
const HANGING: usize = 1000;

/// Far longer than that many attempts take.
const TIMEOUT: Duration = Duration::from_mins(2);

fn notification_with_number(number: usize, url: &str) -> Notification {
    Notification {
        name: format!("notifications/01932e5c-9f4a-7000-8000-{number:012x}"),
        ..notification(0, url)
    }
}

/// The dispatcher opens no more sockets than its limit, and healthy receivers get their
/// notifications meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_notifications_to_a_hanging_receiver_stay_within_their_limit_and_do_not_delay_others()
 {
    let mut core = FakeCore::start().await;
    let dispatcher = Dispatcher::start(&webhook_dispatcher::Config {
        max_in_flight: std::num::NonZeroU32::new(MAX_IN_FLIGHT).unwrap(),
        send_timeout: Duration::from_millis(500),
        ..config(&[&core])
    });
    let mut stream = core.stream().await;
    let (open, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&max);
    let addr = receiver(move |_, mut connection| {
        let (open, max) = (Arc::clone(&open), Arc::clone(&max));
        async move {
            max.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            connection.closed().await;
            open.fetch_sub(1, Ordering::SeqCst);
        }
    })
    .await;
    let hanging_url = format!("http://{addr}/");
    let (healthy_url, _received) = responding(OK).await;

    let mut hanging = (0..HANGING).map(|number| notification_with_number(number, &hanging_url));
    let mut healthy = (HANGING..).map(|number| notification_with_number(number, &healthy_url));
    let mut hanging_in_flight = HashSet::new();
    let mut capacity = stream.next_request().await.unwrap().capacity;
    stream.send(healthy.by_ref().take(1).collect()).await;
    let first: Vec<_> = hanging.by_ref().take(MAX_HANGING_IN_FLIGHT).collect();
    hanging_in_flight.extend(first.iter().map(|notification| notification.name.clone()));
    stream.send(first).await;
    capacity -= 1 + u32::try_from(MAX_HANGING_IN_FLIGHT).unwrap();

    let finished = async {
        let (mut timed_out, mut delivered, mut failed) = (0, 0, 0);
        while timed_out < HANGING {
            let mut next = Vec::new();
            for outcome in &stream.next_report().await {
                stream.acknowledge(outcome);
                if hanging_in_flight.remove(&outcome.name) {
                    assert_eq!(outcome.failure(), Failure::Timeout);
                    timed_out += 1;
                    next.extend(hanging.next());
                } else {
                    match outcome.failure() {
                        Failure::Unspecified => delivered += 1,
                        _ => failed += 1,
                    }
                    next.extend(healthy.next());
                }
            }
            let sent = next.iter().filter(|next| next.url == hanging_url);
            hanging_in_flight.extend(sent.map(|next| next.name.clone()));
            let count = u32::try_from(next.len()).unwrap();
            while capacity < count {
                capacity += stream.next_request().await.unwrap().capacity;
            }
            capacity -= count;
            if !next.is_empty() {
                stream.send(next).await;
            }
        }
        (delivered, failed)
    };
    let finished = tokio::time::timeout(TIMEOUT, finished).await;
    let (delivered, failed) =
        finished.expect("every attempt at a hanging receiver should time out");

    // If each waited for a hanging one, about twenty would be delivered.
    assert!(
        delivered > HANGING / 10,
        "{delivered} delivered while {HANGING} timed out"
    );
    assert_eq!(failed, 0);
    // The receiver may notice a closed connection only after the next one is open.
    let max = peak.load(Ordering::SeqCst);
    assert!(max <= MAX_IN_FLIGHT as usize * 2, "{max}");
    drop(stream);
    dispatcher.shut_down();
}
