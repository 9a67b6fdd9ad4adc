//! The dispatcher as a whole: one exchange for each core, all with the same sender.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Config, ConfigError, core, core::Core, exchange::Exchange, sender::Sender, trust};

/// How long a shutdown may take; what is then still held is left to its lease.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A webhook dispatcher, ready to run.
pub struct WebhookDispatcher {
    cores: Vec<Core>,
    sender: Arc<Sender>,
    max_in_flight: usize,
}

impl WebhookDispatcher {
    /// Checks the whole configuration. Calls nobody yet.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        if config.core_urls.is_empty() {
            return Err(ConfigError::NoCore);
        }
        let (key, secret) = config.credentials()?;
        let roots = trust::roots(&config.ca_files)?;

        let max_in_flight = usize::try_from(config.max_in_flight.get()).unwrap_or(usize::MAX);
        let sender = Sender::new(&config, trust::tls(roots.clone())?)?;

        let cores = config
            .core_urls
            .into_iter()
            .map(|url| {
                let endpoint = core::endpoint(&url, config.allow_plaintext_core, &roots)?;
                Ok(Core::new(endpoint, key.clone(), secret.clone()))
            })
            .collect::<Result<_, ConfigError>>()?;
        Ok(Self {
            cores,
            sender: Arc::new(sender),
            max_in_flight,
        })
    }

    /// Serves every core until `shutdown`, then finishes what is held, for 30 s at most.
    pub async fn run(self, shutdown: CancellationToken) {
        // Each core gets an equal share, at least one: a dispatcher that has none for a core
        // would never serve it.
        let share = (self.max_in_flight / self.cores.len()).max(1);
        let mut exchanges = JoinSet::new();
        for core in self.cores {
            let sender = Arc::clone(&self.sender);
            exchanges.spawn(Exchange::new(core, sender, share, shutdown.clone()).run());
        }

        let timeout = async {
            shutdown.cancelled().await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        tokio::select! {
            () = all(&mut exchanges) => {}
            () = timeout => tracing::warn!(
                exchanges = exchanges.len(),
                "not all was reported in time; leases will end the rest"
            ),
        }
        exchanges.shutdown().await;
    }
}

async fn all(exchanges: &mut JoinSet<()>) {
    while let Some(ended) = exchanges.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "the exchange with a core was lost");
        }
    }
}
