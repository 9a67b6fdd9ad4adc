use core_client::{CoreConfig, Cores, Membership};

use super::*;
use crate::{ClientSecret, Config, resolver::Resolver, sender::Sender, strays::Strays, trust};

const LEASE: Duration = Duration::from_millis(300);

/// With a core that nobody reaches.
fn exchange(strays: &watch::Sender<Strays>, end: &End) -> Exchange {
    let urls = ["http://127.0.0.1:1".parse().unwrap()];
    let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
    let addr = Membership::watch(&cores).members.borrow()[0].clone();
    let secret = ClientSecret::from("secret".to_owned());
    let core = Core::new(cores, addr, "key".to_owned(), secret);
    let tls = trust::tls(rustls::RootCertStore::empty()).unwrap();
    let sender = Sender::new(&Config::default(), tls, Resolver::system()).unwrap();
    let holding = Holding::new(Arc::new(sender), 2, strays.clone());
    let share = watch::Sender::new(2).subscribe();
    Exchange::new(core, holding, share, OpenStreams::default(), end.clone())
}

fn end() -> End {
    let all = CancellationToken::new();
    End {
        this: all.child_token(),
        all,
    }
}

/// One whose attempt fails, being no URL.
fn notification() -> Notification {
    Notification {
        lease_token: "lease-1".to_owned(),
        lease: prost_types::Duration::try_from(LEASE).ok(),
        ..Notification::default()
    }
}

#[tokio::test]
async fn an_exchange_whose_core_is_gone_ends_with_its_sends_and_leaves_what_came_of_them() {
    let (strays, end) = (watch::Sender::new(Strays::new(2)), end());
    let mut exchange = exchange(&strays, &end);
    exchange.holding.ledger.next_request(true);
    exchange.holding.begin(vec![notification()]).unwrap();
    assert!(!strays.borrow().is_settled());

    end.this.cancel();
    exchange.run().await;

    let mut left = Vec::new();
    strays.send_modify(|strays| left = strays.take(2, tokio::time::Instant::now()));
    let [report] = &left[..] else {
        panic!("{left:?}");
    };
    assert_eq!(report.outcome.lease_token, "lease-1");
    assert!(report.until.is_some());
    assert!(strays.borrow().is_settled());
}

/// An outcome that nobody takes is worth nothing after its lease.
#[tokio::test]
async fn a_shutdown_without_any_core_waits_for_leases_and_no_longer() {
    let (strays, end) = (watch::Sender::new(Strays::new(2)), end());
    let mut exchange = exchange(&strays, &end);
    exchange.holding.ledger.next_request(true);
    let begun = tokio::time::Instant::now();
    exchange.holding.begin(vec![notification()]).unwrap();

    end.all.cancel();
    exchange.run().await;

    // Far less than the half minute after which a dispatcher gives up.
    let waited = begun.elapsed();
    let bounds = LEASE..Duration::from_secs(15);
    assert!(bounds.contains(&waited), "{waited:?}");
}
