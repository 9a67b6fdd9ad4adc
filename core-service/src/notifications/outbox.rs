//! The outbox: notifications are enqueued in the transaction of their event, and dispatched after
//! its commit.

use std::collections::BTreeSet;

use domain::scheduling::LEASE_DURATION;
use jiff::Timestamp;

use super::streams::{Reservation, Streams};
use storage::{
    Session,
    notifications::{DeliveryChange, NewNotification},
};

use crate::error::Error;

/// What a transaction enqueued, to be passed to [`Streams::dispatch`] after the commit. Dropping it
/// delays notifications but loses none.
#[derive(Debug, Default)]
pub(crate) struct PendingDispatch {
    reservations: Vec<Reservation>,
    is_any_pending: bool,
}

impl Streams {
    /// Changes a delivery, writes its events and enqueues their notifications.
    pub(crate) async fn enqueue(
        &self,
        transaction: &Session,
        change: DeliveryChange,
        now: Timestamp,
    ) -> Result<PendingDispatch, Error> {
        let notifications = storage::notifications::record_events(transaction, change, now).await?;
        self.insert(transaction, notifications, now).await
    }

    /// Enqueues notifications: pre-leased to a stream of this process if one has capacity and the webhook is proven and
    /// without a backlog, else pending.
    pub(crate) async fn insert(
        &self,
        transaction: &Session,
        mut notifications: Vec<NewNotification>,
        now: Timestamp,
    ) -> Result<PendingDispatch, Error> {
        if notifications.is_empty() {
            return Ok(PendingDispatch::default());
        }
        let (mut reservations, mut has_backlog) = (Vec::new(), BTreeSet::new());
        for notification in &mut notifications {
            let webhook = notification.leased.target.key;
            if has_backlog.contains(&webhook) {
                continue;
            }
            if let Some(reservation) = self.reserve(notification) {
                notification.is_pre_leased = true;
                reservations.push(reservation);
            } else {
                has_backlog.insert(webhook);
            }
        }
        let is_any_pending =
            storage::notifications::insert(transaction, &notifications, LEASE_DURATION, now)
                .await?;
        Ok(PendingDispatch {
            reservations,
            is_any_pending,
        })
    }

    /// Sends pre-leased notifications, and wakes the sequencer for the events and the claims for
    /// pending notifications. Call only after the commit.
    pub(crate) fn dispatch(&self, pending: PendingDispatch) {
        self.events_written.send_replace(());
        for reservation in pending.reservations {
            reservation.send();
        }
        if pending.is_any_pending {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pending_notifications_wake_the_streams() {
        for is_any_pending in [true, false] {
            let (streams, _unsent_leases) = Streams::new();
            let notifications_ready = streams.notifications_ready.subscribe();
            let events_written = streams.events_written.subscribe();

            streams.dispatch(PendingDispatch {
                reservations: Vec::new(),
                is_any_pending,
            });

            assert!(events_written.has_changed().unwrap());
            assert_eq!(notifications_ready.has_changed().unwrap(), is_any_pending);
        }
    }
}
