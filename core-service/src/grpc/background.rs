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
        let Self {
            feed,
            events_sequenced,
            sequencer,
            event_retention,
            delivery_retention,
            idempotency,
            leases,
            unsent_leases,
            attempt_writer,
            notification_cleanup,
        } = self;
        let Lifecycle {
            shutdown,
            task_tracker,
            streams_closed,
        } = lifecycle;

        task_tracker.spawn(async move { feed.poll(events_sequenced).await });
        let token = shutdown.clone();
        task_tracker.spawn(async move { sequencer.run(&token).await });
        let token = shutdown.clone();
        task_tracker.spawn(async move { event_retention.run(&token).await });
        let token = shutdown.clone();
        task_tracker.spawn(async move { delivery_retention.run(&token).await });
        let token = shutdown.clone();
        task_tracker.spawn(async move { idempotency.remove_expired(&token).await });

        let last_tasks = TaskTracker::new();
        let token = streams_closed.clone();
        last_tasks.spawn(async move { leases.run(unsent_leases, &token).await });
        let token = streams_closed.clone();
        last_tasks.spawn(async move { attempt_writer.run(&token).await });
        let token = shutdown.clone();
        last_tasks.spawn(async move { notification_cleanup.run(&token).await });
        last_tasks.close();
        last_tasks
    }
}
