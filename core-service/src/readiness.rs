//! What a core answers to `/readyz`.

use std::time::Duration;

use process::health::Readiness;
use tokio_util::sync::CancellationToken;

use storage::{Pulse, Storage};

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A core can do its work if its database answers and it has not been told to end.
pub(crate) struct CoreReadiness {
    database: Pulse,
    shutdown: CancellationToken,
}

impl CoreReadiness {
    pub(crate) fn new(storage: &Storage, shutdown: CancellationToken) -> Self {
        Self {
            database: storage.pulse(),
            shutdown,
        }
    }
}

impl Readiness for CoreReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            return Err("this core is ending".to_owned());
        }
        match tokio::time::timeout(PATIENCE, self.database.feel()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let error = anyhow::Error::from(error);
                tracing::warn!(error = %format!("{error:#}"), "the database does not answer");
                Err("the database does not answer".to_owned())
            }
            Err(_) => Err(format!("the database has not answered within {PATIENCE:?}")),
        }
    }
}
