//! Tests of a session whose core is unreachable.

use core_client::{CoreConfig, Cores};

use super::*;
use crate::{Config, connector, resolver::Resolver};

const LEASE: Duration = Duration::from_secs(10);

/// A session with an unreachable core.
fn session() -> CoreSession {
    let urls = ["http://127.0.0.1:1".parse().unwrap()];
    let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
    let addr = cores.discover().addresses.borrow()[0].clone();
    let config = Config {
        client_key: Some("key".to_owned()),
        client_secret: Some("secret".to_owned().into()),
        ..Config::default()
    };
    let (key, secret) = config.credentials().unwrap();
    let opener = StreamOpener::new(cores, addr, key, secret);
    let tls = connector::tls_config(rustls::RootCertStore::empty()).unwrap();
    let sender = Sender::new(&config, tls, Resolver::system()).unwrap();
    CoreSession::new(
        opener,
        SharedState {
            sender: Arc::new(sender),
            limit: watch::Sender::new(2).subscribe(),
            connections: Connections::default(),
            streams: TaskTracker::new(),
        },
        CancellationToken::new(),
    )
}

/// A notification whose attempt fails because it has no URL.
fn notification() -> Notification {
    Notification {
        lease_token: "lease-1".to_owned(),
        lease: prost_types::Duration::try_from(LEASE).ok(),
        ..Notification::default()
    }
}

/// An outcome is of no use after its lease has expired.
#[tokio::test(start_paused = true)]
async fn a_shutdown_without_a_reachable_core_waits_only_for_leases_to_expire() {
    let mut session = session();
    let started = Instant::now();
    session.start(notification());

    session.shutdown.cancel();
    session.run().await;

    // Not for the shutdown timeout of 30 s.
    let elapsed = started.elapsed();
    assert!((LEASE..2 * LEASE).contains(&elapsed), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn capacity_of_an_unreported_outcome_is_granted_again_after_its_lease() {
    let mut session = session();
    assert_eq!(session.grantable(), 2);
    session.granted = 1;
    session.start(notification());
    assert_eq!(session.grantable(), 0);

    session.in_flight.ended().await;

    assert_eq!(session.grantable(), 1, "its lease has expired");
}

#[tokio::test]
async fn a_panicked_send_frees_its_capacity() {
    let session = session();
    let guard = session.in_flight.add();
    let send = tokio::spawn(async move {
        let _guard = guard;
        panic!("a send panics");
    });
    assert!(send.await.is_err());
    assert_eq!(session.grantable(), 2);
}
