use core_client::{CoreConfig, Cores};

use super::*;
use crate::{
    ClientSecret, Config, config::SecretSource, orphaned_outcomes::OrphanedOutcomes,
    resolver::Resolver, root_certificates, sender::Sender,
};

const LEASE: Duration = Duration::from_millis(300);

/// A session with an unreachable core.
fn session(orphaned: &watch::Sender<OrphanedOutcomes>, shutdown: &Shutdown) -> CoreSession {
    let urls = ["http://127.0.0.1:1".parse().unwrap()];
    let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
    let addr = cores.discover().addresses.borrow()[0].clone();
    let secret = ClientSecret::from("secret".to_owned());
    let core = StreamOpener::new(cores, addr, "key".to_owned(), SecretSource::Fixed(secret));
    let tls = root_certificates::client_config(rustls::RootCertStore::empty()).unwrap();
    let sender = Sender::new(&Config::default(), tls, Resolver::system()).unwrap();
    let in_flight = InFlight::new(Arc::new(sender), 2, orphaned.clone());
    let limit = watch::Sender::new(2).subscribe();
    let streams = OpenStreams::default();
    CoreSession::new(core, in_flight, limit, streams, shutdown.clone())
}

fn shutdown() -> Shutdown {
    let dispatcher = CancellationToken::new();
    Shutdown {
        session: dispatcher.child_token(),
        dispatcher,
    }
}

/// A notification whose attempt fails because it has no URL.
fn notification() -> Notification {
    Notification {
        lease_token: "lease-1".to_owned(),
        lease: prost_types::Duration::try_from(LEASE).ok(),
        ..Notification::default()
    }
}

#[tokio::test]
async fn a_session_whose_core_is_removed_ends_with_its_sends_and_hands_over_their_outcomes() {
    let orphaned = watch::Sender::new(OrphanedOutcomes::new(2));
    let shutdown = shutdown();
    let mut session = session(&orphaned, &shutdown);
    // Grants the credit that the notification uses.
    session.in_flight.stream_state.next_request(true);
    session.in_flight.start(vec![notification()]).unwrap();
    assert!(!orphaned.borrow().is_drained());

    shutdown.session.cancel();
    session.run().await;

    let mut taken = Vec::new();
    orphaned.send_modify(|orphaned| taken = orphaned.take(2, tokio::time::Instant::now()));
    let [leased] = &taken[..] else {
        panic!("{taken:?}");
    };
    assert_eq!(leased.outcome.lease_token, "lease-1");
    assert!(leased.lease_expires_at.is_some());
    assert!(orphaned.borrow().is_drained());
}

/// An outcome is of no use after its lease has expired.
#[tokio::test]
async fn a_shutdown_without_a_reachable_core_waits_only_for_leases_to_expire() {
    let orphaned = watch::Sender::new(OrphanedOutcomes::new(2));
    let shutdown = shutdown();
    let mut session = session(&orphaned, &shutdown);
    // Grants the credit that the notification uses.
    session.in_flight.stream_state.next_request(true);
    let started = tokio::time::Instant::now();
    session.in_flight.start(vec![notification()]).unwrap();

    shutdown.dispatcher.cancel();
    session.run().await;

    // Well below the shutdown timeout of 30 s.
    let elapsed = started.elapsed();
    let bounds = LEASE..Duration::from_secs(15);
    assert!(bounds.contains(&elapsed), "{elapsed:?}");
}
