//! Tests of the resolver, with scripted lookups.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::*;

const FOUND: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// A resolver that reports its lookups. Those of names that start with `hanging` complete once
/// they are released.
struct FakeNames {
    resolver: Resolver,
    lookups: mpsc::UnboundedReceiver<String>,
    release: watch::Sender<bool>,
}

impl FakeNames {
    fn new(slow_latency: Duration) -> Self {
        let (started, lookups) = mpsc::unbounded_channel();
        let release = watch::Sender::new(false);
        let gate = release.subscribe();
        let look_up = move |name: String| -> BoxFuture<'static, _> {
            let mut gate = gate.clone();
            started.send(name.clone()).unwrap();
            Box::pin(async move {
                if name.starts_with("hanging") {
                    gate.wait_for(|released| *released).await.unwrap();
                }
                Ok(vec![FOUND])
            })
        };
        Self {
            resolver: Resolver::new(Box::new(look_up), slow_latency),
            lookups,
            release,
        }
    }

    /// Names that are never slow, even if they hang.
    fn never_slow() -> Self {
        Self::new(Duration::from_hours(1))
    }

    fn look_up(&self, name: &str) -> JoinHandle<io::Result<Vec<IpAddr>>> {
        let (resolver, name) = (self.resolver.clone(), name.to_owned());
        tokio::spawn(async move { resolver.look_up(&name).await })
    }

    async fn find(&self, name: &str) {
        let found = self.look_up(name).await.unwrap();
        assert_eq!(found.unwrap(), [FOUND], "{name}");
    }

    fn look_up_hanging(&self, count: usize) -> Vec<JoinHandle<io::Result<Vec<IpAddr>>>> {
        let names = (0..count).map(|number| format!("hanging-{number}.example"));
        names.map(|name| self.look_up(&name)).collect()
    }

    async fn next_lookup(&mut self) -> String {
        self.lookups.recv().await.unwrap()
    }

    /// The number of lookups started since the last call.
    async fn started_lookups(&mut self) -> usize {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        std::iter::from_fn(|| self.lookups.try_recv().ok()).count()
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_lookup() {
    let mut names = FakeNames::never_slow();
    let waiting: Vec<_> = ["hanging.example", "HANGING.example"]
        .iter()
        .cycle()
        .take(50)
        .map(|name| names.look_up(name))
        .collect();
    assert_eq!(names.started_lookups().await, 1);

    names.release.send_replace(true);

    for found in waiting {
        assert_eq!(found.await.unwrap().unwrap(), [FOUND]);
    }
    names.find("hanging.example").await;
    assert_eq!(names.started_lookups().await, 1, "results are not cached");
}

#[tokio::test]
async fn an_address_is_not_looked_up() {
    let mut names = FakeNames::never_slow();
    for host in ["192.0.2.1", "2001:db8::1"] {
        let found = names.resolver.look_up(host).await.unwrap();
        assert_eq!(found, [host.parse::<IpAddr>().unwrap()]);
    }
    assert_eq!(names.started_lookups().await, 0);
}

#[tokio::test]
async fn hanging_names_leave_capacity_for_fast_names() {
    let mut names = FakeNames::never_slow();
    names.find("good.example").await;
    names.next_lookup().await;

    let hanging = names.look_up_hanging(200);

    assert_eq!(names.started_lookups().await, MAX_NEW);
    for _ in 0..3 {
        names.find("good.example").await;
        assert_eq!(names.next_lookup().await, "good.example");
    }
    names.release.send_replace(true);
    for found in hanging {
        assert_eq!(
            found.await.unwrap().unwrap(),
            [FOUND],
            "all of them complete"
        );
    }
}

#[tokio::test]
async fn slow_names_leave_capacity_for_new_ones() {
    let mut names = FakeNames::new(Duration::from_millis(1));
    let first = names.look_up_hanging(MAX_NEW);
    assert_eq!(names.started_lookups().await, MAX_NEW);
    let is_slow = |name: &str| names.resolver.0.was_slow.get(name) == Some(true);
    while !(0..MAX_NEW).all(|number| is_slow(&format!("hanging-{number}.example"))) {
        tokio::task::yield_now().await;
    }
    names.release.send_replace(true);
    for found in first {
        found.await.unwrap().unwrap();
    }
    names.release.send_replace(false);

    let _again = names.look_up_hanging(MAX_NEW);

    assert_eq!(names.started_lookups().await, MAX_SLOW);
    names.find("new.example").await;
}

/// A hanging name occupies one thread, however many callers have been cancelled.
#[tokio::test]
async fn cancelled_callers_leave_one_lookup_running_and_none_waiting() {
    let mut names = FakeNames::never_slow();
    let hanging = names.look_up_hanging(MAX_NEW);
    assert_eq!(names.started_lookups().await, MAX_NEW);
    let waiting = names.look_up("late.example");
    assert_eq!(names.started_lookups().await, 0);

    waiting.abort();
    for caller in hanging {
        caller.abort();
    }
    for _ in 0..3 {
        let again = names.look_up_hanging(MAX_NEW);
        assert_eq!(names.started_lookups().await, 0);
        for caller in again {
            caller.abort();
        }
    }

    names.release.send_replace(true);
    assert_eq!(
        names.started_lookups().await,
        0,
        "the abandoned lookup does not start"
    );
    assert!(names.resolver.0.pending.lock().is_empty());
    names.find("late.example").await;
}

#[tokio::test]
async fn a_lookup_that_panics_is_removed() {
    let panics = AtomicBool::new(true);
    let resolver = Resolver::with(move |_| {
        assert!(
            !panics.swap(false, Ordering::Relaxed),
            "the first lookup panics"
        );
        Box::pin(async { Ok(vec![FOUND]) })
    });
    resolver.look_up("panics.example").await.unwrap_err();
    let found = resolver.look_up("panics.example").await.unwrap();
    assert_eq!(found, [FOUND]);
}
