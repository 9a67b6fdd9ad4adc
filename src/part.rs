//! One of the three services while it runs.

use anyhow::Context;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// A running service. Nothing else may end it, and its end does not go unnoticed.
pub(crate) struct Part {
    name: &'static str,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Part {
    /// Runs a service; `ended` is told when it no longer runs, panics included.
    pub(crate) fn spawn<Running>(
        name: &'static str,
        ended: &CancellationToken,
        run: impl FnOnce(CancellationToken) -> Running,
    ) -> Self
    where
        Running: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let shutdown = CancellationToken::new();
        let running = run(shutdown.clone());
        let ended = ended.clone().drop_guard();
        Self {
            name,
            shutdown,
            running: tokio::spawn(async move {
                let _ended = ended;
                running.await
            }),
        }
    }

    /// Lets it finish what it is doing, but not beyond the deadline.
    pub(crate) async fn stop(mut self, deadline: Instant) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let Ok(ended) = tokio::time::timeout_at(deadline, &mut self.running).await else {
            tracing::warn!("the {} had not finished in time", self.name);
            self.running.abort();
            return Ok(());
        };
        ended?.with_context(|| format!("the {} failed", self.name))
    }
}
