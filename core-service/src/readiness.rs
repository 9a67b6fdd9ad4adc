//! The readiness check of a core (`/readyz`).

use std::time::Duration;

use process::health::Readiness;
use tokio_util::sync::CancellationToken;

use storage::{HealthCheck, Storage};

/// Timeout of the database check.
const DATABASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// A core is ready if its database responds and it is not shutting down.
pub(crate) struct CoreReadiness {
    database: HealthCheck,
    shutdown: CancellationToken,
}

impl CoreReadiness {
    pub(crate) fn new(storage: &Storage, shutdown: CancellationToken) -> Self {
        Self {
            database: storage.health_check(),
            shutdown,
        }
    }
}

impl Readiness for CoreReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            return Err("this core is shutting down".to_owned());
        }
        match tokio::time::timeout(DATABASE_TIMEOUT, self.database.run()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let error = anyhow::Error::from(error);
                tracing::warn!(error = %format!("{error:#}"), "the database does not respond");
                Err("the database does not respond".to_owned())
            }
            Err(_) => Err(format!(
                "the database did not respond within {DATABASE_TIMEOUT:?}"
            )),
        }
    }
}
