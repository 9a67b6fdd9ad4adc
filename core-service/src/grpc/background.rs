//! The background tasks of a core.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::{
    events::{EventFeed, EventRetention, Sequencer},
    idempotency::Idempotency,
    notifications::{AttemptWriter, Leases, NotificationCleanup, UnsentLeases},
    personal_data::DeliveryRetention,
};

use crate::lifecycle::Lifecycle;

/// The background tasks of a core, ready to be spawned.
pub(crate) struct Background {
    pub(super) feed: Arc<EventFeed>,
    /// Signalled when this core has numbered events.
    pub(super) events_sequenced: watch::Receiver<()>,
    pub(super) sequencer: Sequencer,
    pub(super) event_retention: EventRetention,
    pub(super) delivery_retention: DeliveryRetention,
    pub(super) idempotency: Arc<Idempotency>,
    pub(super) leases: Arc<Leases>,
    pub(super) unsent_leases: UnsentLeases,
    pub(super) attempt_writer: AttemptWriter,
    pub(super) notification_cleanup: NotificationCleanup,
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
        tasks.spawn(self.event_retention.run(shutdown()));
        tasks.spawn(self.delivery_retention.run(shutdown()));
        tasks.spawn(self.idempotency.remove_expired(shutdown()));

        let last_tasks = TaskTracker::new();
        last_tasks.spawn(self.leases.run(self.unsent_leases, streams_closed()));
        last_tasks.spawn(self.attempt_writer.run(streams_closed()));
        last_tasks.spawn(self.notification_cleanup.run(shutdown()));
        last_tasks.close();
        last_tasks
    }
}
