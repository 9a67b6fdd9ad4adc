//! Discovers cores: looks up the host names of their URLs periodically.

use std::{io, mem, net::SocketAddr, sync::Arc, time::Duration};

use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::core_url::{CoreAddr, CoreUrl};

/// How often host names are looked up.
const INTERVAL: Duration = Duration::from_secs(10);

/// The minimum time between lookups, however often a refresh is requested.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The system's resolver: hosts file and DNS.
async fn resolve(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, port)).await?.collect())
}

/// The current addresses of the cores. Lookups stop when it is dropped.
pub struct Discovery {
    /// Each address once, even if several URLs resolve to it.
    pub addresses: watch::Receiver<Vec<CoreAddr>>,
    refresh: Arc<Notify>,
    _lookups: AbortOnDropHandle<()>,
}

impl Discovery {
    /// Starts looking up the hosts of the URLs.
    pub(crate) fn start(urls: Vec<Arc<CoreUrl>>) -> Self {
        Self::start_with(urls, resolve, INTERVAL)
    }

    fn start_with<F>(
        urls: Vec<Arc<CoreUrl>>,
        resolve: impl Fn(String, u16) -> F + Send + Sync + 'static,
        interval: Duration,
    ) -> Self
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send,
    {
        let mut lookups = Lookups::new(urls);
        let (sender, addresses) = watch::channel(lookups.addresses());
        let refresh = Arc::new(Notify::new());
        let refresh_requested = Arc::clone(&refresh);
        let running = tokio::spawn(async move {
            while lookups.has_names() {
                lookups.look_up(&resolve).await;
                sender.send_if_modified(|current| {
                    let before = mem::replace(current, lookups.addresses());
                    before != *current
                });
                tokio::time::sleep(MIN_INTERVAL.min(interval)).await;
                let remaining = interval.saturating_sub(MIN_INTERVAL);
                let _ = tokio::time::timeout(remaining, refresh_requested.notified()).await;
            }
            // Keeps the sender open: without host names the addresses never change.
            std::future::pending::<()>().await;
            drop(sender);
        });
        Self {
            addresses,
            refresh,
            _lookups: AbortOnDropHandle::new(running),
        }
    }

    /// Requests a lookup, because a core cannot be reached and its address may have changed.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }
}

/// The addresses of the URLs, looked up once.
pub(crate) async fn addresses(urls: &[Arc<CoreUrl>]) -> Vec<CoreAddr> {
    let mut lookups = Lookups::new(urls.to_vec());
    lookups.look_up(&resolve).await;
    lookups.addresses()
}

/// The URLs with their addresses: those of a host name are of the last successful lookup.
struct Lookups(Vec<(Arc<CoreUrl>, Vec<SocketAddr>)>);

impl Lookups {
    fn new(urls: Vec<Arc<CoreUrl>>) -> Self {
        let urls = urls.into_iter().map(|url| {
            let literal = url.ip().map(|ip| SocketAddr::new(ip, url.port()));
            (url, literal.into_iter().collect())
        });
        Self(urls.collect())
    }

    fn has_names(&self) -> bool {
        self.0.iter().any(|(url, _)| url.ip().is_none())
    }

    async fn look_up<F>(&mut self, resolve: &impl Fn(String, u16) -> F)
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>>,
    {
        for (url, addresses) in self.0.iter_mut().filter(|(url, _)| url.ip().is_none()) {
            let found = match resolve(url.host(), url.port()).await {
                Ok(found) if found.is_empty() => Err(io::ErrorKind::NotFound.into()),
                found => found,
            };
            match found {
                Ok(mut found) => {
                    found.sort_unstable();
                    if *addresses != found {
                        tracing::info!(core.url = %url, addresses = ?found, "addresses of core changed");
                    }
                    *addresses = found;
                }
                // The previous addresses stay valid while the name server is unavailable.
                Err(error) => {
                    tracing::warn!(core.url = %url, %error, "cannot resolve host name of core");
                }
            }
        }
    }

    fn addresses(&self) -> Vec<CoreAddr> {
        let mut addresses: Vec<CoreAddr> = Vec::new();
        for (url, found) in &self.0 {
            for &addr in found {
                if !addresses.iter().any(|known| known.addr == addr) {
                    addresses.push(CoreAddr {
                        url: Arc::clone(url),
                        addr,
                    });
                }
            }
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Mutex, mpsc};

    use super::*;

    fn addr(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 50051))
    }

    #[tokio::test]
    async fn a_refresh_looks_up_before_the_interval_has_passed() {
        let urls = vec![Arc::new("https://core.example".parse().unwrap())];
        let (looked_up, mut lookups) = mpsc::unbounded_channel();
        let resolve = move |_, _| {
            looked_up.send(()).unwrap();
            async { Ok(vec![addr(1)]) }
        };
        let discovery = Discovery::start_with(urls, resolve, Duration::from_hours(1));
        lookups.recv().await.unwrap();

        discovery.refresh();

        let again = tokio::time::timeout(Duration::from_mins(1), lookups.recv());
        assert_eq!(again.await, Ok(Some(())));
    }

    #[tokio::test]
    async fn cores_are_added_and_removed_with_the_addresses_of_their_names() {
        let urls = ["https://192.0.2.9:50051", "https://core.example"]
            .map(|url| Arc::new(url.parse().unwrap()))
            .to_vec();
        let (results, received) = mpsc::unbounded_channel();
        let received = Arc::new(Mutex::new(received));
        // One of the results for each lookup.
        let resolve = move |name: String, port| {
            assert_eq!((&*name, port), ("core.example", 50051));
            let received = Arc::clone(&received);
            async move {
                match received.lock().await.recv().await {
                    Some(found) => found,
                    None => std::future::pending().await,
                }
            }
        };
        let discovery = Discovery::start_with(urls, resolve, Duration::from_millis(1));
        let mut addresses = discovery.addresses.clone();
        let addrs = |addresses: &Vec<CoreAddr>| -> Vec<_> {
            addresses.iter().map(CoreAddr::addr).collect()
        };
        assert_eq!(addrs(&addresses.borrow_and_update()), [addr(9)]);

        for (found, expected) in [
            (vec![addr(2), addr(1)], vec![addr(9), addr(1), addr(2)]),
            (
                vec![addr(3), addr(9), addr(2)],
                vec![addr(9), addr(2), addr(3)],
            ),
        ] {
            // A failed or empty lookup changes nothing.
            results.send(Err(io::ErrorKind::TimedOut.into())).unwrap();
            results.send(Ok(Vec::new())).unwrap();
            results.send(Ok(found)).unwrap();
            addresses.changed().await.unwrap();
            assert_eq!(addrs(&addresses.borrow_and_update()), expected);
        }
    }
}
