//! A handle to the gateway, the core or the dispatcher of an all-in-one.

use anyhow::Context;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

pub(crate) struct ServiceHandle {
    name: &'static str,
    shutdown: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl ServiceHandle {
    /// Spawns a service. Cancels `stopped` when the service ends, even by a panic.
    pub(crate) fn spawn<Service>(
        name: &'static str,
        stopped: &CancellationToken,
        run: impl FnOnce(CancellationToken) -> Service,
    ) -> Self
    where
        Service: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let shutdown = CancellationToken::new();
        let service = run(shutdown.clone());
        let stopped = stopped.clone().drop_guard();
        Self {
            name,
            shutdown,
            task: tokio::spawn(async move {
                let _stopped = stopped;
                service.await
            }),
        }
    }

    /// Drains the service until the deadline, then aborts it.
    pub(crate) async fn stop(mut self, deadline: Instant) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let Ok(result) = tokio::time::timeout_at(deadline, &mut self.task).await else {
            tracing::warn!("the {} has not drained in time", self.name);
            self.task.abort();
            return Ok(());
        };
        result?.with_context(|| format!("the {} failed", self.name))
    }
}
