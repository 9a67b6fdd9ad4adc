//! The dispatcher as a whole: one exchange for each core there is, all with the same sender.

use std::{sync::Arc, time::Duration};

use core_client::{CoreAddr, Cores, Membership};
use process::health::Health;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    ClientSecret, Config, ConfigError,
    core::Core,
    exchange::{End, Exchange},
    holding::Holding,
    ledger::MAX_UNRECORDED,
    readiness::{DispatcherReadiness, OpenStreams},
    resolver::Resolver,
    sender::Sender,
    strays::Strays,
    trust,
};

/// How long a shutdown may take; what is then still held is left to its lease.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A webhook dispatcher, ready to run.
pub struct WebhookDispatcher {
    cores: Cores,
    key: String,
    secret: ClientSecret,
    sender: Arc<Sender>,
    max_in_flight: usize,
    health: Option<Health>,
}

impl WebhookDispatcher {
    /// As [`WebhookDispatcher::new`], and listens for who asks for its health, if it shall.
    pub async fn bind(config: Config) -> Result<Self, ConfigError> {
        let health_listen = config.health_listen;
        let mut dispatcher = Self::new(&config)?;
        if let Some(addr) = health_listen {
            let health = Health::bind(addr)
                .await
                .map_err(|source| ConfigError::HealthListen { addr, source })?;
            dispatcher.health = Some(health);
        }
        Ok(dispatcher)
    }

    /// Checks the whole configuration. Calls nobody yet.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let cores = Cores::new(&config.core_urls, &config.core)?;
        let (key, secret) = config.credentials()?;
        let roots = trust::roots(&config.ca_files)?;

        let max_in_flight = usize::try_from(config.max_in_flight.get()).unwrap_or(usize::MAX);
        let sender = Sender::new(config, trust::tls(roots)?, Resolver::system())?;

        Ok(Self {
            cores,
            key,
            secret,
            sender: Arc::new(sender),
            max_in_flight,
            health: None,
        })
    }

    /// Serves every core until `shutdown`, then finishes what is held, for 30 s at most.
    pub async fn run(self, shutdown: CancellationToken) {
        let streams = OpenStreams::default();
        let _health_ends = self.health.map(|health| {
            let readiness = DispatcherReadiness {
                streams: streams.clone(),
                shutdown: shutdown.clone(),
            };
            AbortOnDropHandle::new(tokio::spawn(health.run(Arc::new(readiness))))
        });
        let membership = Membership::watch(&self.cores);
        let mut addrs = membership.members.clone();
        let mut exchanges = Exchanges {
            cores: self.cores,
            key: self.key,
            secret: self.secret,
            sender: self.sender,
            max_in_flight: self.max_in_flight,
            share: watch::Sender::new(self.max_in_flight),
            streams,
            strays: watch::Sender::new(Strays::new(MAX_UNRECORDED * self.max_in_flight)),
            held: Vec::new(),
            running: JoinSet::new(),
            shutdown: shutdown.clone(),
        };

        while !shutdown.is_cancelled() {
            exchanges.hold(&addrs.borrow_and_update().clone());
            tokio::select! {
                Ok(()) = addrs.changed() => {}
                Some(ended) = exchanges.running.join_next() => tell_if_lost(ended),
                () = shutdown.cancelled() => {}
            }
        }

        if tokio::time::timeout(SHUTDOWN_TIMEOUT, exchanges.all_end())
            .await
            .is_err()
        {
            tracing::warn!(
                exchanges = exchanges.running.len(),
                "not all was reported in time; leases will end the rest"
            );
        }
        exchanges.running.shutdown().await;
    }
}

/// The exchanges with all cores.
struct Exchanges {
    cores: Cores,
    key: String,
    secret: ClientSecret,
    sender: Arc<Sender>,
    max_in_flight: usize,
    /// Each core's part of what may be in flight.
    share: watch::Sender<usize>,
    streams: OpenStreams,
    /// What they leave to each other.
    strays: watch::Sender<Strays>,
    /// What ends each exchange that is to go on.
    held: Vec<(CoreAddr, CancellationToken)>,
    running: JoinSet<()>,
    shutdown: CancellationToken,
}

impl Exchanges {
    /// Holds an exchange with each of these cores. One with any other is told to end: what it
    /// holds is reported, by itself or, if its core has gone, by the others.
    fn hold(&mut self, addrs: &[CoreAddr]) {
        // Each core gets an equal share, at least one: a dispatcher that has none for a core
        // would never serve it.
        let share = (self.max_in_flight / addrs.len().max(1)).max(1);
        self.share.send_replace(share);
        self.held.retain(|(addr, end)| {
            let stays = addrs.contains(addr);
            if !stays {
                end.cancel();
            }
            stays
        });
        for addr in addrs {
            if self.held.iter().any(|(held, _)| held == addr) {
                continue;
            }
            let end = self.shutdown.child_token();
            let sender = Arc::clone(&self.sender);
            let exchange = Exchange::new(
                Core::new(
                    self.cores.clone(),
                    addr.clone(),
                    self.key.clone(),
                    self.secret.clone(),
                ),
                Holding::new(sender, share, self.strays.clone()),
                self.share.subscribe(),
                self.streams.clone(),
                End {
                    this: end.clone(),
                    all: self.shutdown.clone(),
                },
            );
            self.running.spawn(exchange.run());
            self.held.push((addr.clone(), end));
        }
    }

    async fn all_end(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            tell_if_lost(ended);
        }
    }
}

fn tell_if_lost(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the exchange with a core was lost");
    }
}
