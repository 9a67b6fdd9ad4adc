//! What ends when a core shuts down, in this order: the streams and the other calls in flight, the
//! background task that releases the leases which the streams left.

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The signals and background tasks of a core's shutdown. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifecycle {
    /// Cancelled at shutdown: ends the streams and the background tasks that run at intervals.
    pub(crate) shutdown: CancellationToken,
    /// The background tasks that end at shutdown, among them those of the streams.
    pub(crate) task_tracker: TaskTracker,
    /// Cancelled when all streams are closed, so that no more outcomes arrive.
    pub(crate) streams_closed: CancellationToken,
}
