//! Removes what is past its retention, and the backlogs of disabled webhooks, in small batches.

use std::{sync::Arc, time::Duration};

use domain::id::{DeliveryId, StoreId};
use jiff::Timestamp;
use process::clock::Clock;
use storage::{
    Storage, audit_events, delivery_removal, events, idempotency_keys, notifications,
    personal_data::{self, PastRetention},
    retention_lease, task_changes, webhooks,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{error::Error, idempotency};

/// How often to look for something to remove.
const INTERVAL: Duration = Duration::from_mins(1);

/// The pause after a full batch, which leaves the database to other writes.
const PAUSE_BETWEEN_BATCHES: Duration = Duration::from_millis(20);

/// How long changes of tasks are kept. A watcher that was away for longer lists the tasks again.
const TASK_CHANGES: Duration = Duration::from_hours(24);

/// The most events, changes of tasks, and notifications, that one transaction removes.
const BATCH: u64 = 500;

/// The most stored responses that one transaction deletes.
const RESPONSES: u64 = 200;

/// The most deliveries that one transaction erases.
const DELIVERIES: u64 = 50;

/// The most erased deliveries that one transaction removes.
const REMOVED_DELIVERIES: u64 = 100;

/// How long a core alone removes what is past its retention, after which another one may: longer than [`INTERVAL`].
const LEASE: Duration = Duration::from_secs(90);

/// Removes what is past its retention. One core at a time does so.
pub(crate) struct Retention {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) events: Duration,
    /// How long finished notifications and their attempts are kept.
    pub(crate) notifications: Duration,
    /// Of the personal data of deliveries. `None`: it is never erased.
    pub(crate) deliveries: Option<Duration>,
    pub(crate) audit: Duration,
    /// Of erased deliveries. `None`: they are never removed.
    pub(crate) removal: Option<Duration>,
    pub(crate) lease: RetentionLease,
}

/// The lease of this core.
pub(crate) struct RetentionLease {
    owner: Uuid,
    /// When it was acquired or renewed last, if it is held.
    renewed_at: Option<Instant>,
}

impl RetentionLease {
    pub(crate) fn new() -> Self {
        Self {
            owner: Uuid::now_v7(),
            renewed_at: None,
        }
    }

    /// Whether this core has the lease; renews it in the second half of its time.
    async fn is_held(&mut self, storage: &Storage) -> bool {
        if storage.is_single_process() {
            return true;
        }
        let now = Instant::now();
        let is_fresh = |renewed_at: Instant| now.duration_since(renewed_at) < LEASE / 2;
        if self.renewed_at.is_some_and(is_fresh) {
            return true;
        }
        let owner = self.owner;
        let held = storage.write(move |transaction| async move {
            retention_lease::hold(&transaction, owner, LEASE).await
        });
        let is_held = held.await.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot acquire the lease of retention");
            false
        });
        self.renewed_at = is_held.then_some(now);
        is_held
    }
}

impl Retention {
    /// Removes batches until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut clock_changes = self.clock.manual_changes();
        // A write goes on if the wait for it is cancelled.
        while let Some(is_any_left) = shutdown.run_until_cancelled(self.remove_in_turn()).await {
            let pause = if is_any_left {
                PAUSE_BETWEEN_BATCHES
            } else {
                INTERVAL
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = clock_changes.next() => {}
            }
        }
    }

    /// As [`Self::remove_batches`], if it is this core's turn.
    async fn remove_in_turn(&mut self) -> bool {
        self.lease.is_held(&self.storage).await && self.remove_batches().await
    }

    /// Removes a batch of each kind. Returns whether more may be left of one.
    async fn remove_batches(&self) -> bool {
        let now = self.clock.now();
        let cancelled = notifications::cancel_backlog_batch(&self.storage, now).await;
        let mut is_any_left = false;
        for (is_left, failure) in [
            (
                cancelled.map_err(Error::from),
                "cannot cancel notifications of disabled webhooks",
            ),
            (
                self.remove_notifications(now).await,
                "cannot remove old notifications",
            ),
            (self.remove_events(now).await, "cannot remove old events"),
            (
                self.remove_task_changes(now).await,
                "cannot remove old changes of tasks",
            ),
            (
                self.remove_audit_events(now).await,
                "cannot remove old audit events",
            ),
            (
                self.delete_geocodes().await,
                "cannot delete results of geocoders",
            ),
            (
                self.delete_responses(now).await,
                "cannot delete expired idempotency keys",
            ),
            (
                self.erase_deliveries(now).await,
                "cannot erase deliveries past their retention",
            ),
            (
                self.remove_deliveries(now).await,
                "cannot remove erased deliveries",
            ),
        ] {
            is_any_left |= is_left.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "{failure}");
                false
            });
        }
        is_any_left
    }

    /// Removes finished notifications with their attempts, and old failures of hosts. Skips rows
    /// that are locked.
    async fn remove_notifications(&self, now: Timestamp) -> Result<bool, Error> {
        let before = cutoff(now, self.notifications);
        let removed = self.storage.write(move |transaction| async move {
            webhooks::remove_old_failures(&transaction, now).await?;
            notifications::remove_finished(&transaction, before, BATCH).await
        });
        Ok(removed.await? == BATCH)
    }

    async fn remove_events(&self, now: Timestamp) -> Result<bool, Error> {
        let before = cutoff(now, self.events);
        let removed = self.storage.write(move |transaction| async move {
            events::remove_oldest(&transaction, before, BATCH).await
        });
        Ok(u64::try_from(removed.await?) == Ok(BATCH))
    }

    async fn remove_task_changes(&self, now: Timestamp) -> Result<bool, Error> {
        let before = cutoff(now, TASK_CHANGES);
        let removed = self.storage.write(move |transaction| async move {
            task_changes::remove_oldest(&transaction, before, BATCH).await
        });
        Ok(removed.await? == BATCH)
    }

    async fn remove_audit_events(&self, now: Timestamp) -> Result<bool, Error> {
        let before = cutoff(now, self.audit);
        let removed = self.storage.write(move |transaction| async move {
            audit_events::remove_oldest(&transaction, before, BATCH).await
        });
        Ok(removed.await? == BATCH)
    }

    /// Deletes what cores of an earlier release, which may serve during an upgrade, store of geocoders.
    async fn delete_geocodes(&self) -> Result<bool, Error> {
        let deleted = self.storage.write(move |transaction| async move {
            personal_data::delete_geocodes(&transaction, BATCH).await
        });
        Ok(deleted.await? == BATCH)
    }

    /// Deletes the stored responses to requests with idempotency keys.
    async fn delete_responses(&self, now: Timestamp) -> Result<bool, Error> {
        let before = idempotency::expired_before(now);
        let deleted = self.storage.write(move |transaction| async move {
            idempotency_keys::delete_expired(&transaction, before, RESPONSES).await
        });
        Ok(deleted.await? == RESPONSES)
    }

    /// Erases the personal data of deliveries, once the stored responses with it have expired; the receivers'
    /// responses have a retention of their own.
    async fn erase_deliveries(&self, now: Timestamp) -> Result<bool, Error> {
        let Some(retention) = self.deliveries else {
            return Ok(false);
        };
        let past = PastRetention {
            ended: cutoff(now, retention),
            changed: idempotency::expired_before(now),
        };
        let reader = self.storage.reader();
        let found = personal_data::find_past_retention(reader, past, DELIVERIES).await?;
        let is_full = u64::try_from(found.len()) == Ok(DELIVERIES);
        if found.is_empty() || self.erase(found.clone(), past, now).await.is_ok() {
            return Ok(is_full);
        }
        // One that fails does not keep the others.
        let mut is_any_erased = false;
        for (store_id, id) in found {
            match self.erase(vec![(store_id, id)], past, now).await {
                Ok(()) => is_any_erased = true,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, delivery.id = %id, "cannot erase a delivery past its retention");
                }
            }
        }
        Ok(is_full && is_any_erased)
    }

    async fn remove_deliveries(&self, now: Timestamp) -> Result<bool, Error> {
        let Some(removal) = self.removal else {
            return Ok(false);
        };
        let past = PastRetention {
            ended: cutoff(now, removal),
            changed: idempotency::expired_before(now),
        };
        let removed = self.storage.write(move |transaction| async move {
            delivery_removal::remove_erased(&transaction, past, REMOVED_DELIVERIES).await
        });
        Ok(removed.await?)
    }

    /// Erases deliveries in one transaction.
    async fn erase(
        &self,
        mut deliveries: Vec<(StoreId, DeliveryId)>,
        past: PastRetention,
        now: Timestamp,
    ) -> Result<(), Error> {
        // In the order in which changes of couriers' lists lock them.
        deliveries.sort_unstable_by_key(|(store_id, id)| (*id, *store_id));
        let erased = self.storage.write(move |transaction| async move {
            for (store_id, id) in deliveries {
                personal_data::erase_past_retention(&transaction, store_id, id, past, now).await?;
            }
            Ok(())
        });
        erased.await
    }
}

fn cutoff(now: Timestamp, retention: Duration) -> Timestamp {
    now.saturating_sub(retention).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use domain::id::ApiClientId;
    use jiff::SignedDuration;
    use storage::{
        fixture,
        idempotency_keys::{Key, Request},
    };
    use uuid::Uuid;

    use super::*;

    const RETENTION: Duration = Duration::from_hours(24);

    fn retention(storage: &Arc<Storage>, now: Timestamp) -> Retention {
        Retention {
            storage: Arc::clone(storage),
            clock: Clock::manual(now),
            events: RETENTION,
            notifications: RETENTION,
            deliveries: None,
            audit: RETENTION,
            removal: None,
            lease: RetentionLease::new(),
        }
    }

    #[tokio::test]
    async fn events_are_removed_after_their_retention_and_not_before() {
        let (_directory, storage) = fixture::sqlite().await;
        let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
        let lease = Duration::from_mins(1);
        // Each has an event. Only numbered ones are removed.
        fixture::leased_notifications(&storage, &webhook, 3, lease).await;
        let numbered = storage.write(move |transaction| async move {
            events::assign_numbers(&transaction, 3, events::QueueHeads::BEGINNING).await
        });
        assert_eq!(numbered.await.unwrap(), Some(3));
        for (after, is_left) in [(0, true), (1, false)] {
            let now = webhook.created_at + RETENTION + SignedDuration::from_micros(after);

            retention(&storage, now).remove_batches().await;

            let left = events::list_of_all_stores(storage.reader(), 0, 3).await;
            assert_eq!(!left.unwrap().is_empty(), is_left, "{after}");
        }
    }

    #[tokio::test]
    async fn a_delivery_that_cannot_be_erased_does_not_keep_the_others() {
        let (_directory, storage) = fixture::sqlite().await;
        let [mut broken, other] =
            [(); 2].map(|()| fixture::delivery(StoreId::new(), Timestamp::UNIX_EPOCH));
        broken.pickup.details.weight = Some(7);
        for delivery in [&broken, &other] {
            let new = fixture::new_delivery(delivery.clone());
            storage.insert_delivery(new).await.unwrap();
        }
        fixture::execute(&storage, "UPDATE tasks SET kind = 'swap' WHERE weight = 7").await;
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 10);
        let retention = Retention {
            deliveries: Some(RETENTION),
            ..retention(&storage, now)
        };

        assert!(!retention.remove_batches().await);

        let past = PastRetention {
            ended: now,
            changed: now,
        };
        let remaining = personal_data::find_past_retention(storage.reader(), past, 2).await;
        assert_eq!(remaining.unwrap(), [(broken.store_id, broken.id)]);
        let found = storage::deliveries::find(storage.reader(), other.store_id, other.id).await;
        assert!(found.unwrap().unwrap().is_erased);
    }

    fn key(number: u8) -> Key {
        Key {
            store_id: StoreId(Uuid::nil()),
            api_client_id: ApiClientId(Uuid::nil()),
            hash: [number; 32],
        }
    }

    #[tokio::test]
    async fn responses_are_deleted_once_they_have_expired() {
        let (_directory, storage) = fixture::sqlite().await;
        let now = Timestamp::UNIX_EPOCH;
        let expired = idempotency::expired_before(now);
        let valid = expired + SignedDuration::from_micros(1);
        let acquired = storage.write(move |transaction| async move {
            for (number, acquired_at) in [(1, expired), (2, valid)] {
                let (key, cutoff) = (key(number), Timestamp::MIN);
                let request = Request {
                    hash: [0; 32],
                    delivery_id: None,
                };
                idempotency_keys::acquire(&transaction, key, request, acquired_at, cutoff).await?;
            }
            Ok::<_, Error>(())
        });
        acquired.await.unwrap();

        retention(&storage, now).remove_batches().await;

        for (number, is_left) in [(1, false), (2, true)] {
            let found = idempotency_keys::find(storage.reader(), key(number), Timestamp::MIN);
            assert_eq!(found.await.unwrap().is_some(), is_left, "{number}");
        }
    }
}
