//! The sends of one session, and their outcomes until a core has acknowledged them, on this
//! session's stream or on another's.

use std::sync::Arc;

use proto::{Ack, Notification};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Duration, Instant},
};

use crate::{
    orphaned_outcomes::OrphanedOutcomes,
    sender::Sender,
    stream_state::{CreditExceeded, LeasedOutcome, StreamState},
};

/// The sends in flight and unacknowledged outcomes of one session.
pub(crate) struct InFlight {
    sender: Arc<Sender>,
    sends: JoinSet<LeasedOutcome>,
    pub(crate) stream_state: StreamState,
    orphaned: watch::Sender<OrphanedOutcomes>,
    orphaned_changes: watch::Receiver<OrphanedOutcomes>,
    /// Whether this session is counted among the active ones.
    is_active: bool,
}

impl InFlight {
    /// Starts empty, with a limit of concurrent sends. `orphaned` is the queue shared by all
    /// sessions.
    pub(crate) fn new(
        sender: Arc<Sender>,
        limit: usize,
        orphaned: watch::Sender<OrphanedOutcomes>,
    ) -> Self {
        let orphaned_changes = orphaned.subscribe();
        Self {
            sender,
            sends: JoinSet::new(),
            stream_state: StreamState::new(limit),
            orphaned,
            orphaned_changes,
            is_active: false,
        }
    }

    pub(crate) fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// Starts sending notifications received on the stream.
    pub(crate) fn start(&mut self, notifications: Vec<Notification>) -> Result<(), CreditExceeded> {
        self.stream_state.accept(&notifications)?;
        let now = Instant::now();
        for notification in notifications {
            let lease = notification
                .lease
                .and_then(|lease| Duration::try_from(lease).ok());
            let lease_expires_at = lease.and_then(|lease| now.checked_add(lease));
            let sender = Arc::clone(&self.sender);
            self.sends.spawn(async move {
                LeasedOutcome {
                    outcome: sender.send(notification).await,
                    lease_expires_at,
                }
            });
        }
        self.update_active();
        Ok(())
    }

    /// Waits until a send has completed or the queue of orphaned outcomes has changed.
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            Some(completed) = self.sends.join_next() => self.complete(completed),
            // Cannot fail: this also owns the sender of the channel.
            _ = self.orphaned_changes.changed() => {}
        }
    }

    /// Collects the outcomes of all completed sends.
    pub(crate) fn collect_completed(&mut self) {
        while let Some(completed) = self.sends.try_join_next() {
            self.complete(completed);
        }
    }

    pub(crate) fn acknowledge(&mut self, acks: Vec<Ack>) {
        for ack in acks {
            self.stream_state.acknowledge(ack);
        }
        self.update_active();
    }

    /// Takes over orphaned outcomes, up to the spare capacity.
    pub(crate) fn take_orphaned(&mut self) {
        let capacity = self.stream_state.spare_capacity();
        if capacity > 0 && self.has_orphaned() {
            self.transfer(|orphaned, stream_state| {
                stream_state.enqueue(orphaned.take(capacity, Instant::now()));
            });
        }
    }

    /// Hands over unacknowledged outcomes to the shared queue while this session has no stream.
    pub(crate) fn hand_over(&mut self) {
        self.collect_completed();
        let mut dropped = 0;
        self.transfer(|orphaned, stream_state| {
            dropped = orphaned.push(stream_state.take_unacknowledged(), Instant::now());
        });
        if dropped > 0 {
            tracing::warn!(
                count = dropped,
                "outcomes dropped: no core has an open stream, and the queue is full; their leases will expire"
            );
        }
    }

    /// Whether this session has nothing in flight or unacknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        self.stream_state.is_drained()
    }

    /// Whether orphaned outcomes of any session wait for a stream.
    pub(crate) fn has_orphaned(&self) -> bool {
        !self.orphaned.borrow().is_empty()
    }

    /// Whether all sessions are drained.
    pub(crate) fn all_drained(&self) -> bool {
        self.orphaned.borrow().is_drained()
    }

    fn complete(&mut self, completed: Result<LeasedOutcome, JoinError>) {
        let outcome = completed
            .inspect_err(
                |error| tracing::error!(%error, "send task panicked; its lease will expire"),
            )
            .ok();
        self.stream_state.complete(outcome);
        self.update_active();
    }

    /// Updates whether this session is counted among the active ones.
    fn update_active(&mut self) {
        if self.stream_state.is_drained() == self.is_active {
            self.transfer(|_, _| {});
        }
    }

    /// Moves outcomes atomically between this session and the shared queue. Notifies the other
    /// sessions if this changes whether the queue is empty, or whether all sessions are drained.
    fn transfer(&mut self, move_outcomes: impl FnOnce(&mut OrphanedOutcomes, &mut StreamState)) {
        let (stream_state, is_active) = (&mut self.stream_state, &mut self.is_active);
        self.orphaned.send_if_modified(|orphaned| {
            let before = (orphaned.is_empty(), orphaned.is_drained());
            move_outcomes(orphaned, stream_state);
            let active = !stream_state.is_drained();
            if active != *is_active {
                *is_active = active;
                orphaned.adjust_active_sessions(active);
            }
            before != (orphaned.is_empty(), orphaned.is_drained())
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_active {
            self.orphaned
                .send_modify(|orphaned| orphaned.adjust_active_sessions(false));
        }
    }
}
