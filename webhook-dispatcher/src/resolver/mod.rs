//! Looking up the names of hosts. What the system's resolver has begun can't be broken off, and
//! takes a thread for as long as it takes: so look-ups are bounded, and those that hang leave
//! room for the others.

mod paces;

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

use self::paces::{Pace, Paces};

/// How many names are looked up at once: far fewer than the runtime has threads for what blocks.
const MAX_LOOK_UPS: usize = 64;
/// How many of those may be names that have not been looked up before, and how many names that
/// were too slow the last time, as it is with receivers: the rest is left to those that answer.
const MAX_NEW: usize = MAX_LOOK_UPS / 2;
const MAX_SLOW: usize = MAX_LOOK_UPS / 4;

/// A name that is not there by then is too slow.
const SLOW: Duration = Duration::from_secs(2);

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
            all_places: places(MAX_LOOK_UPS),
            new_places: places(MAX_NEW),
            slow_places: places(MAX_SLOW),
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

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

#[cfg(test)]
mod tests;
