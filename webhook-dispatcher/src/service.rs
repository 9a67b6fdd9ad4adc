//! Runs the dispatcher: one session with each core, all with the same sender.

use std::{path::PathBuf, sync::Arc, time::Duration};

use core_client::{CoreAddr, Cores};
use futures_util::{FutureExt as _, future::BoxFuture};
use process::{
    health::{HealthListener, Readiness},
    metrics::{Exposition, Registry},
    tls,
};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{
    Config,
    config::SecretSource,
    connections::Connections,
    connector,
    core_session::{CoreSession, SharedState},
    resolver::Resolver,
    sender::Sender,
    stream_opener::StreamOpener,
};

/// Limit for draining on shutdown. The leases of notifications still in flight expire later.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

pub struct WebhookDispatcher {
    sessions: CoreSessions,
    health: Option<HealthListener>,
    /// The client certificate for calls to cores.
    certificate: Option<PathBuf>,
}

impl WebhookDispatcher {
    /// Like [`WebhookDispatcher::new`], and binds the health listener if it is configured.
    pub fn bind(config: &Config) -> anyhow::Result<Self> {
        let mut dispatcher = Self::new(config)?;
        dispatcher.health = HealthListener::bind(config.health_listen)?;
        Ok(dispatcher)
    }

    /// Validates the configuration. Does not connect.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let cores = Cores::new(&config.core_urls, &config.core)?;
        let (key, secret) = config.credentials()?;
        let roots = connector::root_certificates(&config.webhook_ca_files)?;

        let max_in_flight = usize::try_from(config.max_in_flight.get()).unwrap_or(usize::MAX);
        let limit_per_core = watch::Sender::new(max_in_flight);
        let sender = Sender::new(config, connector::tls_config(roots)?, Resolver::system())?;

        Ok(Self {
            sessions: CoreSessions {
                cores,
                key,
                secret,
                shared: SharedState {
                    sender: Arc::new(sender),
                    limit: limit_per_core.subscribe(),
                    connections: Connections::default(),
                    streams: TaskTracker::new(),
                },
                max_in_flight,
                limit_per_core,
                open_sessions: Vec::new(),
                running: JoinSet::new(),
            },
            health: None,
            certificate: config.core.core_tls_certificate.clone(),
        })
    }

    pub fn register_metrics(&self, registry: &mut Registry) {
        let CoreSessions {
            shared,
            max_in_flight,
            ..
        } = &self.sessions;
        let metrics = shared.sender.metrics();
        metrics.register(*max_in_flight, shared.streams.clone(), registry);
        tls::register_expiry(&[("client", self.certificate.as_ref())], registry);
    }

    /// Serves every core until `shutdown`, then drains for at most 30 s.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        self.serve(shutdown).boxed()
    }

    async fn serve(self, shutdown: CancellationToken) {
        let mut exposition = Exposition::new();
        self.register_metrics(exposition.registry());
        let mut sessions = self.sessions;
        let _health_server = self.health.map(|health| {
            let readiness = DispatcherReadiness {
                streams: sessions.shared.streams.clone(),
                shutdown: shutdown.clone(),
            };
            AbortOnDropHandle::new(tokio::spawn(health.run(Arc::new(readiness), exposition)))
        });
        let discovery = sessions.cores.discover();
        let mut addrs = discovery.addresses.clone();

        while !shutdown.is_cancelled() {
            sessions.update(&addrs.borrow_and_update().clone(), &shutdown);
            tokio::select! {
                Ok(()) = addrs.changed() => {}
                Some(ended) = sessions.running.join_next() => sessions.remove_connection(ended),
                () = shutdown.cancelled() => {}
            }
        }

        if tokio::time::timeout(SHUTDOWN_TIMEOUT, sessions.join())
            .await
            .is_err()
        {
            tracing::warn!(
                sessions = sessions.running.len(),
                "shutdown timed out with unreported outcomes; their leases will expire"
            );
        }
        sessions.running.shutdown().await;
    }
}

/// A dispatcher is ready with at least one open stream, until it shuts down.
struct DispatcherReadiness {
    streams: TaskTracker,
    shutdown: CancellationToken,
}

impl Readiness for DispatcherReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            Err("shutting down".to_owned())
        } else if self.streams.is_empty() {
            Err("no open stream from any core".to_owned())
        } else {
            Ok(())
        }
    }
}

struct CoreSessions {
    cores: Cores,
    key: String,
    secret: SecretSource,
    shared: SharedState,
    max_in_flight: usize,
    /// Each core's share of `max_in_flight`.
    limit_per_core: watch::Sender<usize>,
    /// The cores with a session, and the tokens that end it.
    open_sessions: Vec<(CoreAddr, CancellationToken)>,
    running: JoinSet<CoreAddr>,
}

impl CoreSessions {
    /// Opens a session with each of these cores that has none, and ends the other sessions. An
    /// ended session reports its outcomes first, to any core.
    fn update(&mut self, addrs: &[CoreAddr], shutdown: &CancellationToken) {
        // At least one: a core without capacity sends no notifications.
        let limit = (self.max_in_flight / addrs.len().max(1)).max(1);
        self.limit_per_core.send_replace(limit);
        self.open_sessions.retain(|(addr, end)| {
            let is_current = addrs.contains(addr);
            if !is_current {
                end.cancel();
            }
            is_current
        });
        for addr in addrs {
            if self.has_session(addr) {
                continue;
            }
            let end = shutdown.child_token();
            let session = CoreSession::new(
                StreamOpener::new(
                    self.cores.clone(),
                    addr.clone(),
                    self.key.clone(),
                    self.secret.clone(),
                ),
                self.shared.clone(),
                end.clone(),
            );
            self.running.spawn(session.run());
            self.open_sessions.push((addr.clone(), end));
        }
    }

    /// Removes the connection to the core of an ended session, unless the core has returned and has
    /// another session.
    fn remove_connection(&self, ended: Result<CoreAddr, JoinError>) {
        let addr = log_panic(ended);
        if let Some(addr) = addr.filter(|addr| !self.has_session(addr)) {
            self.shared.connections.remove(&addr);
        }
    }

    fn has_session(&self, addr: &CoreAddr) -> bool {
        self.open_sessions.iter().any(|(open, _)| open == addr)
    }

    /// Waits until all sessions have ended. Each may report its outcomes to the cores of the
    /// others.
    async fn join(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            log_panic(ended);
        }
    }
}

fn log_panic(ended: Result<CoreAddr, JoinError>) -> Option<CoreAddr> {
    ended
        .inspect_err(|error| tracing::error!(%error, "core session panicked"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_core_has_one_session_while_its_address_is_known() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(|url| url.parse().unwrap());
        let config = Config {
            core_urls: urls.into(),
            client_key: Some("key".to_owned()),
            client_secret: Some("secret".to_owned().into()),
            ..Config::default()
        };
        let mut sessions = WebhookDispatcher::new(&config).unwrap().sessions;
        let addrs = sessions.cores.addresses().await.unwrap();
        let shutdown = CancellationToken::new();

        for known in [&addrs[..1], &addrs, &addrs, &addrs[1..]] {
            sessions.update(known, &shutdown);
            let open: Vec<_> = sessions
                .open_sessions
                .iter()
                .map(|(addr, _)| addr)
                .collect();
            assert_eq!(open, known.iter().collect::<Vec<_>>());
        }

        let ended = sessions.running.join_next().await.unwrap();
        assert_eq!(log_panic(ended), Some(addrs[0].clone()));
        assert_eq!(sessions.running.len(), 1);
    }
}
