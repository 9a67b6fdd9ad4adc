//! The background tasks of a core.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{
    events::{EventFeed, Sequencer},
    notifications::{AttemptWriter, Leases, UnsentLeases},
    retention::Retention,
};

use crate::lifecycle::Lifecycle;

/// The background tasks of a core, ready to be spawned.
pub(crate) struct Background {
    pub(super) feed: Arc<EventFeed>,
    /// Signalled when this core has numbered events.
    pub(super) events_sequenced: watch::Receiver<()>,
    pub(super) sequencer: Sequencer,
    pub(super) retention: Retention,
    pub(super) leases: Arc<Leases>,
    pub(super) unsent_leases: UnsentLeases,
    pub(super) attempt_writer: AttemptWriter,
}

impl Background {
    /// Spawns the tasks. Returns those to wait for after all streams are closed: some of them run
    /// until then and until their inputs are empty.
    pub(crate) fn spawn(self, lifecycle: &Lifecycle) -> TaskTracker {
        let shutdown = || lifecycle.shutdown.clone();
        let streams_closed = || lifecycle.streams_closed.clone();

        let tasks = &lifecycle.task_tracker;
        tasks.spawn(self.feed.poll(self.events_sequenced));
        tasks.spawn(self.sequencer.run(shutdown()));
        tasks.spawn(self.retention.run(shutdown()));

        let last_tasks = TaskTracker::new();
        last_tasks.spawn(self.leases.run(self.unsent_leases, streams_closed()));
        last_tasks.spawn(self.attempt_writer.run(streams_closed()));
        last_tasks.close();
        last_tasks
    }
}
