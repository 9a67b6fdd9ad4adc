//! Which cores there are: at every address that the names have, looked up again and again.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::cores::{CoreAddr, Cores};

/// How often names are looked up.
const INTERVAL: Duration = Duration::from_secs(10);

/// How soon again at the earliest, when a core can't be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    fn resolve(
        &self,
        name: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The system's way: hosts file, DNS.
struct System;

impl Resolve for System {
    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }
}

/// The cores as they come and go.
pub struct Membership {
    /// Each address once, whatever the names that lead to it.
    pub members: watch::Receiver<Vec<CoreAddr>>,
    doubted: Arc<Notify>,
    _lookups: AbortOnDropHandle<()>,
}

impl Membership {
    /// Looks names up from now on, for as long as this lives.
    pub fn watch(cores: &Cores) -> Self {
        Self::watch_with(cores, System, INTERVAL)
    }

    /// As [`Membership::watch`], with a way of one's own.
    pub fn watch_with(cores: &Cores, resolver: impl Resolve, interval: Duration) -> Self {
        let mut lookups = Lookups {
            cores: cores.clone(),
            found: BTreeMap::new(),
        };
        let (tell, members) = watch::channel(lookups.members());
        let doubted = Arc::new(Notify::new());
        let asked = Arc::clone(&doubted);
        let running = tokio::spawn(async move {
            while lookups.cores.urls.iter().any(|url| url.ip().is_none()) {
                lookups.look_up(&resolver).await;
                let members = lookups.members();
                tell.send_if_modified(|before| {
                    let changed = *before != members;
                    if changed {
                        *before = members;
                    }
                    changed
                });
                tokio::time::sleep(PAUSE.min(interval)).await;
                let rest = interval.saturating_sub(PAUSE);
                let _ = tokio::time::timeout(rest, asked.notified()).await;
            }
            // Whoever waits for a change waits for ever.
            std::future::pending::<()>().await;
            drop(tell);
        });
        Self {
            members,
            doubted,
            _lookups: AbortOnDropHandle::new(running),
        }
    }

    /// One of them can't be reached: perhaps it is elsewhere by now.
    pub fn doubt(&self) {
        self.doubted.notify_one();
    }
}

/// Those there are now.
pub(crate) async fn addresses(cores: &Cores) -> Vec<CoreAddr> {
    let mut lookups = Lookups {
        cores: cores.clone(),
        found: BTreeMap::new(),
    };
    lookups.look_up(&System).await;
    lookups.members()
}

struct Lookups {
    cores: Cores,
    /// What each name had when it was last looked up with success.
    found: BTreeMap<usize, Vec<SocketAddr>>,
}

impl Lookups {
    async fn look_up(&mut self, resolver: &impl Resolve) {
        for (number, url) in self.cores.urls.iter().enumerate() {
            if url.ip().is_some() {
                continue;
            }
            let found = match resolver.resolve(&url.host(), url.port()).await {
                Ok(found) if found.is_empty() => Err(io::ErrorKind::NotFound.into()),
                found => found,
            };
            match found {
                Ok(mut found) => {
                    found.sort_unstable();
                    if self.found.get(&number) != Some(&found) {
                        tracing::info!(core.url = %url, addresses = ?found, "a core's name was looked up");
                    }
                    self.found.insert(number, found);
                }
                // A name server that is away takes no core away.
                Err(error) => {
                    tracing::warn!(core.url = %url, %error, "a core's name has no address");
                }
            }
        }
    }

    fn members(&self) -> Vec<CoreAddr> {
        let mut members: Vec<CoreAddr> = Vec::new();
        for (number, url) in self.cores.urls.iter().enumerate() {
            let literal = url.ip().map(|ip| SocketAddr::new(ip, url.port()));
            let found = self.found.get(&number).into_iter().flatten().copied();
            for addr in literal.into_iter().chain(found) {
                if !members.iter().any(|member| member.addr == addr) {
                    members.push(CoreAddr {
                        url: Arc::clone(url),
                        addr,
                    });
                }
            }
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::CoreConfig;

    /// Gives what it is told to, one lookup after the other.
    struct Told(tokio::sync::Mutex<mpsc::UnboundedReceiver<io::Result<Vec<SocketAddr>>>>);

    impl Resolve for Told {
        async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            assert_eq!((name, port), ("core.example", 50051));
            match self.0.lock().await.recv().await {
                Some(found) => found,
                None => std::future::pending().await,
            }
        }
    }

    fn addr(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 50051))
    }

    #[tokio::test]
    async fn cores_join_and_leave_with_the_addresses_of_their_names() {
        let urls =
            ["https://192.0.2.9:50051", "https://core.example"].map(|url| url.parse().unwrap());
        let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
        let (tell, told) = mpsc::unbounded_channel();
        let resolver = Told(tokio::sync::Mutex::new(told));
        let membership = Membership::watch_with(&cores, resolver, Duration::from_millis(1));
        let mut members = membership.members.clone();
        let seen =
            |members: &Vec<CoreAddr>| -> Vec<_> { members.iter().map(CoreAddr::addr).collect() };
        assert_eq!(seen(&members.borrow_and_update()), [addr(9)]);

        for (found, expected) in [
            (vec![addr(2), addr(1)], vec![addr(9), addr(1), addr(2)]),
            (
                vec![addr(3), addr(9), addr(2)],
                vec![addr(9), addr(2), addr(3)],
            ),
        ] {
            // A lookup that fails, or finds nobody, changes nothing.
            tell.send(Err(io::ErrorKind::TimedOut.into())).unwrap();
            tell.send(Ok(Vec::new())).unwrap();
            tell.send(Ok(found)).unwrap();
            members.changed().await.unwrap();
            assert_eq!(seen(&members.borrow_and_update()), expected);
        }
    }
}
