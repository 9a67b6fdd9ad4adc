//! What ends when a core shuts down, in this order: the calls in flight, the streams, the tasks
//! that store what the streams left.

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The signals and tasks of a core's shutdown. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifecycle {
    /// Cancelled at shutdown: ends the streams and the tasks that run at intervals.
    pub(crate) shutdown: CancellationToken,
    /// The tasks that end at shutdown, among them those of the streams.
    pub(crate) task_tracker: TaskTracker,
    /// Cancelled when all streams are closed, so that no more outcomes arrive.
    pub(crate) streams_closed: CancellationToken,
}
