//! Resolves host names with bounded concurrency. A lookup of the system's resolver cannot be
//! cancelled and occupies a thread until it ends, so slow names are limited separately.

use std::{collections::HashMap, io, net::IpAddr, sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use moka::{policy::EvictionPolicy, sync::Cache};
use parking_lot::Mutex;
use tokio::{
    net::lookup_host,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The maximum number of concurrent lookups; far below the size of the blocking thread pool.
const MAX_LOOKUPS: usize = 64;
/// Of all lookups, the maximum for names that were not looked up recently.
const MAX_NEW: usize = MAX_LOOKUPS / 2;
/// Of all lookups, the maximum for names whose last lookup was slow. What new and slow names
/// leave is reserved for fast names.
const MAX_SLOW: usize = MAX_LOOKUPS / 4;

/// The latency from which a name is slow.
const SLOW_LATENCY: Duration = Duration::from_secs(2);

/// The maximum number of names whose last latency is known.
const MAX_KNOWN: u64 = 8192;

type LookupFn = Box<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The result of a lookup, shared by its callers.
type LookupResult = Result<Arc<[IpAddr]>, Arc<io::Error>>;

/// A lookup that its callers share.
type Lookup = BoxFuture<'static, LookupResult>;

#[derive(Clone)]
pub(crate) struct Resolver(Arc<Inner>);

struct Inner {
    look_up: LookupFn,
    slow_latency: Duration,
    /// Every lookup needs one of these. One for a new or a slow name needs a second permit.
    all_permits: Arc<Semaphore>,
    new_permits: Arc<Semaphore>,
    slow_permits: Arc<Semaphore>,
    /// The lookups that run or wait for a permit: one for each name.
    pending: Mutex<HashMap<String, WeakShared<Lookup>>>,
    /// Whether the last lookup of a name was slow.
    was_slow: Cache<String, bool>,
}

impl Resolver {
    pub(crate) fn system() -> Self {
        let look_up = |name: String| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let addrs = lookup_host((name, 0)).await?;
                Ok(addrs.map(|addr| addr.ip()).collect())
            })
        };
        Self::new(Box::new(look_up), SLOW_LATENCY)
    }

    fn new(look_up: LookupFn, slow_latency: Duration) -> Self {
        let permits = |count| Arc::new(Semaphore::new(count));
        Self(Arc::new(Inner {
            look_up,
            slow_latency,
            all_permits: permits(MAX_LOOKUPS),
            new_permits: permits(MAX_NEW),
            slow_permits: permits(MAX_SLOW),
            pending: Mutex::default(),
            // By default, a full cache would refuse names that it has rarely been asked for.
            was_slow: Cache::builder()
                .max_capacity(MAX_KNOWN)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }))
    }

    #[cfg(test)]
    pub(crate) fn with(
        look_up: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Box::new(look_up), SLOW_LATENCY)
    }

    /// Returns the addresses of a host name or literal address. Cancel-safe: a lookup that has
    /// started continues for the next caller.
    pub(crate) async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(addr) = host.parse() {
            return Ok(vec![addr]);
        }
        match self.join(host.to_ascii_lowercase()).await {
            Ok(addrs) => Ok(addrs.to_vec()),
            Err(error) => Err(io::Error::new(error.kind(), error)),
        }
    }

    /// Joins the pending lookup of a name, or begins one.
    fn join(&self, name: String) -> Shared<Lookup> {
        let mut pending = self.0.pending.lock();
        pending.retain(|_, lookup| lookup.upgrade().is_some());
        if let Some(lookup) = pending.get(&name).and_then(WeakShared::upgrade) {
            return lookup;
        }
        let lookup = self.clone().run(name.clone()).boxed().shared();
        pending.extend(lookup.downgrade().map(|lookup| (name, lookup)));
        lookup
    }

    /// Waits for the permits; that ends when the last caller is cancelled. Once it has them, the
    /// lookup cannot be cancelled: it runs in a task, and stays pending for later callers until it
    /// ends.
    async fn run(self, name: String) -> LookupResult {
        let permits = self.acquire_permits(&name).await;
        // Without it, `pending` would forget the lookup when the last caller is cancelled.
        let own = self
            .0
            .pending
            .lock()
            .get(&name)
            .and_then(WeakShared::upgrade);
        let lookup = tokio::spawn(async move {
            let _held = (permits, own);
            let mut lookup = (self.0.look_up)(name.clone());
            let in_time = timeout(self.0.slow_latency, &mut lookup).await;
            self.0.was_slow.insert(name.clone(), in_time.is_err());
            let result = match in_time {
                Ok(result) => result,
                Err(_) => lookup.await,
            };
            self.0.pending.lock().remove(&name);
            result.map(Arc::from).map_err(Arc::new)
        });
        lookup
            .await
            .unwrap_or_else(|error| Err(Arc::new(io::Error::other(error))))
    }

    /// Acquires the permits for a lookup, first come, first served.
    async fn acquire_permits(&self, name: &str) -> [Option<OwnedSemaphorePermit>; 2] {
        let class_permits = match self.0.was_slow.get(name) {
            Some(false) => None,
            Some(true) => Some(&self.0.slow_permits),
            None => Some(&self.0.new_permits),
        };
        let acquire = async |permits: &Arc<Semaphore>| {
            // The semaphores are never closed.
            Arc::clone(permits).acquire_owned().await.ok()
        };
        let class_permit = match class_permits {
            Some(permits) => acquire(permits).await,
            None => None,
        };
        [class_permit, acquire(&self.0.all_permits).await]
    }
}

#[cfg(test)]
mod tests;
