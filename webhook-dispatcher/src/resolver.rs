//! Looking up the names of hosts. What the system's resolver has begun can't be broken off, and
//! takes a thread for as long as it takes: so look-ups are bounded, and those that hang leave
//! room for the others.

use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    net::lookup_host,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};

/// How many names are looked up at once: far fewer than the runtime has threads for what blocks.
const MOST: usize = 64;
/// How many of those may be names that have not been looked up before, and how many names that
/// were too slow the last time, as it is with receivers: the rest is left to those that answer.
const MOST_NEW: usize = MOST / 2;
const MOST_SLOW: usize = MOST / 4;

/// A name that is not there by then is too slow.
const SLOW: Duration = Duration::from_secs(2);

/// Of how many names at least it is remembered how fast they were.
const REMEMBERED: usize = 4096;

/// How a name is looked up.
type LookUp = Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// What a look-up has found.
type Answer = Result<Arc<[IpAddr]>, Arc<io::Error>>;

/// Who is told what a look-up has found.
type Told = Arc<watch::Sender<Option<Answer>>>;

/// Where names get their addresses from.
#[derive(Clone)]
pub(crate) struct Resolver(Arc<Shared>);

struct Shared {
    look_up: LookUp,
    slow: Duration,
    /// Everybody's places, and those of new and of slow names.
    all_places: Arc<Semaphore>,
    new_places: Arc<Semaphore>,
    slow_places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The look-ups that have begun or wait for a place: one for each name.
    running: HashMap<String, Told>,
    paces: Paces,
}

/// How fast a name was the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Quick,
    Slow,
}

/// The names of late, in two generations: the older one is forgotten when the younger is full.
#[derive(Default)]
struct Paces {
    young: HashMap<String, Pace>,
    old: HashMap<String, Pace>,
}

/// One look-up. It is struck out when it ends, however it does.
struct Running {
    resolver: Resolver,
    name: String,
    told: Told,
}

impl Resolver {
    /// The system's.
    pub(crate) fn system() -> Self {
        let look_up = |name: String| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let addrs = lookup_host((name, 0)).await?;
                Ok(addrs.map(|addr| addr.ip()).collect())
            })
        };
        Self::new(Box::new(look_up), SLOW)
    }

    fn new(look_up: LookUp, slow: Duration) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self(Arc::new(Shared {
            look_up,
            slow,
            all_places: places(MOST),
            new_places: places(MOST_NEW),
            slow_places: places(MOST_SLOW),
            state: Mutex::default(),
        }))
    }

    /// As given.
    #[cfg(test)]
    pub(crate) fn of(
        look_up: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Box::new(look_up), SLOW)
    }

    /// The addresses of a host, which may be an address itself. Who waits no more may go away:
    /// a look-up that has begun goes on for the next who asks.
    pub(crate) async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(addr) = host.parse() {
            return Ok(vec![addr]);
        }
        let mut told = self.join(host.to_ascii_lowercase());
        match told.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(Ok(addrs))) => Ok(addrs.to_vec()),
            Ok(Some(Err(error))) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            Ok(None) | Err(_) => Err(io::Error::other("the look-up was lost")),
        }
    }

    /// The name's look-up: the one that is running, or a new one.
    fn join(&self, name: String) -> watch::Receiver<Option<Answer>> {
        let mut state = self.state();
        if let Some(told) = state.running.get(&name) {
            return told.subscribe();
        }
        let (told, answer) = watch::channel(None);
        let told = Arc::new(told);
        state.running.insert(name.clone(), Arc::clone(&told));
        let pace = state.paces.of(&name);
        let running = Running {
            resolver: self.clone(),
            name,
            told,
        };
        tokio::spawn(running.run(pace));
        answer
    }

    /// A place for a look-up, in the order of asking.
    async fn place(&self, pace: Option<Pace>) -> [Option<OwnedSemaphorePermit>; 2] {
        let own = match pace {
            Some(Pace::Quick) => None,
            Some(Pace::Slow) => Some(&self.0.slow_places),
            None => Some(&self.0.new_places),
        };
        let take = async |places: &Arc<Semaphore>| {
            // Never closed.
            Arc::clone(places).acquire_owned().await.ok()
        };
        let own = match own {
            Some(own) => take(own).await,
            None => None,
        };
        [own, take(&self.0.all_places).await]
    }

    /// What is behind the lock is changed by what can't panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    async fn run(self, pace: Option<Pace>) {
        let shared = &self.resolver.0;
        let mut permits = std::pin::pin!(self.resolver.place(pace));
        // Held until the look-up ends, even if nobody waits for it any more.
        let _permits = loop {
            tokio::select! {
                permits = &mut permits => break permits,
                () = self.told.closed() => if self.is_unwanted() {
                    return;
                },
            }
        };
        let mut looked_up = (shared.look_up)(self.name.clone());
        let found = if let Ok(found) = timeout(shared.slow, &mut looked_up).await {
            self.note(Pace::Quick);
            found
        } else {
            self.note(Pace::Slow);
            looked_up.await
        };
        let found = found.map(Arc::from).map_err(Arc::new);
        self.told.send_replace(Some(found));
    }

    /// Whether nobody waits; then nobody joins it any more either.
    fn is_unwanted(&self) -> bool {
        let mut state = self.resolver.state();
        let is_unwanted = self.told.receiver_count() == 0;
        if is_unwanted {
            state.running.remove(&self.name);
        }
        is_unwanted
    }

    fn note(&self, pace: Pace) {
        self.resolver.state().paces.note(&self.name, pace);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.resolver.state();
        // By then there may be another one.
        let is_own = |told: &Told| Arc::ptr_eq(told, &self.told);
        if state.running.get(&self.name).is_some_and(is_own) {
            state.running.remove(&self.name);
        }
    }
}

impl Paces {
    /// None for a name that has not been looked up of late.
    fn of(&self, name: &str) -> Option<Pace> {
        let pace = self.young.get(name).or_else(|| self.old.get(name));
        pace.copied()
    }

    fn note(&mut self, name: &str, pace: Pace) {
        self.young.insert(name.to_owned(), pace);
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

#[cfg(test)]
mod tests {
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

        assert_eq!(names.asked_so_far().await, MOST_NEW);
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
        let first = names.look_up_hanging(MOST_NEW);
        assert_eq!(names.asked_so_far().await, MOST_NEW);
        let is_slow = |name: &str| names.resolver.state().paces.of(name) == Some(Pace::Slow);
        while !(0..MOST_NEW).all(|number| is_slow(&format!("hanging-{number}.example"))) {
            tokio::task::yield_now().await;
        }
        names.go.send_replace(true);
        for found in first {
            found.await.unwrap().unwrap();
        }
        names.go.send_replace(false);

        let _again = names.look_up_hanging(MOST_NEW);

        assert_eq!(names.asked_so_far().await, MOST_SLOW);
        names.find("new.example").await;
    }

    /// However many give up waiting: a hanging name has one thread, not one each time.
    #[tokio::test]
    async fn who_goes_away_leaves_one_look_up_running_and_none_waiting() {
        let mut names = Names::patient();
        let hanging = names.look_up_hanging(MOST_NEW);
        assert_eq!(names.asked_so_far().await, MOST_NEW);
        let waiting = names.look_up("late.example");
        assert_eq!(names.asked_so_far().await, 0);

        waiting.abort();
        for gone in hanging {
            gone.abort();
        }
        for _ in 0..3 {
            let again = names.look_up_hanging(MOST_NEW);
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

    #[test]
    fn the_names_of_late_are_remembered_and_older_ones_forgotten() {
        let mut paces = Paces::default();
        let name = |number: usize| number.to_string();
        for number in 0..3 * REMEMBERED {
            paces.note(&name(number), Pace::Slow);
        }
        assert_eq!(paces.of(&name(3 * REMEMBERED - 1)), Some(Pace::Slow));
        assert_eq!(paces.of(&name(2 * REMEMBERED)), Some(Pace::Slow));
        assert_eq!(paces.of(&name(REMEMBERED - 1)), None);
        assert!(paces.young.len() + paces.old.len() <= 2 * REMEMBERED);
    }
}
