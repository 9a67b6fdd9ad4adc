use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::{sync::mpsc, task::JoinHandle};

use super::*;

const FOUND: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// A resolver that tells what it is asked, and answers for names that begin with `hanging`
/// once it is let go.
struct Names {
    resolver: Resolver,
    asked: mpsc::UnboundedReceiver<String>,
    go: watch::Sender<bool>,
}

impl Names {
    fn new(slow: Duration) -> Self {
        let (ask, asked) = mpsc::unbounded_channel();
        let go = watch::Sender::new(false);
        let gate = go.subscribe();
        let look_up = move |name: String| -> BoxFuture<'static, _> {
            let mut gate = gate.clone();
            ask.send(name.clone()).unwrap();
            Box::pin(async move {
                if name.starts_with("hanging") {
                    gate.wait_for(|go| *go).await.unwrap();
                }
                Ok(vec![FOUND])
            })
        };
        Self {
            resolver: Resolver::new(Box::new(look_up), slow),
            asked,
            go,
        }
    }

    /// With names that hang, and none of which is known to.
    fn patient() -> Self {
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

    async fn asked(&mut self) -> String {
        self.asked.recv().await.unwrap()
    }

    /// How many names have been asked for since, all others waiting.
    async fn asked_so_far(&mut self) -> usize {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        std::iter::from_fn(|| self.asked.try_recv().ok()).count()
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_all_who_wait() {
    let mut names = Names::patient();
    let waiting: Vec<_> = ["hanging.example", "HANGING.example"]
        .iter()
        .cycle()
        .take(50)
        .map(|name| names.look_up(name))
        .collect();
    assert_eq!(names.asked_so_far().await, 1);

    names.go.send_replace(true);

    for found in waiting {
        assert_eq!(found.await.unwrap().unwrap(), [FOUND]);
    }
    names.find("hanging.example").await;
    assert_eq!(names.asked_so_far().await, 1, "nothing is kept");
}

#[tokio::test]
async fn an_address_is_not_looked_up() {
    let mut names = Names::patient();
    for host in ["192.0.2.1", "2001:db8::1"] {
        let found = names.resolver.look_up(host).await.unwrap();
        assert_eq!(found, [host.parse::<IpAddr>().unwrap()]);
    }
    assert_eq!(names.asked_so_far().await, 0);
}

#[tokio::test]
async fn names_that_hang_leave_room_for_those_that_answered() {
    let mut names = Names::patient();
    names.find("good.example").await;
    names.asked().await;

    let hanging = names.look_up_hanging(200);

    assert_eq!(names.asked_so_far().await, MAX_NEW);
    for _ in 0..3 {
        names.find("good.example").await;
        assert_eq!(names.asked().await, "good.example");
    }
    names.go.send_replace(true);
    for found in hanging {
        assert_eq!(found.await.unwrap().unwrap(), [FOUND], "each has its turn");
    }
}

#[tokio::test]
async fn names_that_were_too_slow_leave_room_for_new_ones() {
    let mut names = Names::new(Duration::from_millis(1));
    let first = names.look_up_hanging(MAX_NEW);
    assert_eq!(names.asked_so_far().await, MAX_NEW);
    let is_slow = |name: &str| names.resolver.state().paces.of(name) == Some(Pace::Slow);
    while !(0..MAX_NEW).all(|number| is_slow(&format!("hanging-{number}.example"))) {
        tokio::task::yield_now().await;
    }
    names.go.send_replace(true);
    for found in first {
        found.await.unwrap().unwrap();
    }
    names.go.send_replace(false);

    let _again = names.look_up_hanging(MAX_NEW);

    assert_eq!(names.asked_so_far().await, MAX_SLOW);
    names.find("new.example").await;
}

/// However many give up waiting: a hanging name has one thread, not one each time.
#[tokio::test]
async fn who_goes_away_leaves_one_look_up_running_and_none_waiting() {
    let mut names = Names::patient();
    let hanging = names.look_up_hanging(MAX_NEW);
    assert_eq!(names.asked_so_far().await, MAX_NEW);
    let waiting = names.look_up("late.example");
    assert_eq!(names.asked_so_far().await, 0);

    waiting.abort();
    for gone in hanging {
        gone.abort();
    }
    for _ in 0..3 {
        let again = names.look_up_hanging(MAX_NEW);
        assert_eq!(names.asked_so_far().await, 0);
        for gone in again {
            gone.abort();
        }
    }

    names.go.send_replace(true);
    assert_eq!(
        names.asked_so_far().await,
        0,
        "nobody waits for it any more"
    );
    assert!(names.resolver.state().running.is_empty());
    names.find("late.example").await;
}

#[tokio::test]
async fn a_look_up_that_is_lost_is_struck_out() {
    let is_broken = AtomicBool::new(true);
    let resolver = Resolver::of(move |_| {
        assert!(!is_broken.swap(false, Ordering::Relaxed), "as it happens");
        Box::pin(async { Ok(vec![FOUND]) })
    });
    resolver.look_up("lost.example").await.unwrap_err();
    let found = resolver.look_up("lost.example").await.unwrap();
    assert_eq!(found, [FOUND]);
}
