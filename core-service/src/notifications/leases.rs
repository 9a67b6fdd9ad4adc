//! Releases leases: of notifications that were not sent, expired ones, and those of a previous
//! process.

use std::sync::Arc;

use domain::scheduling::LEASE_DURATION;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{Queue, streams::UnsentLeases};
use storage::{Storage, notifications::Lease};

use crate::error::Error;

/// The most leases that one statement names: databases limit the size of a condition, and
/// dispatchers report any number.
pub(super) const MAX_LEASES_PER_STATEMENT: usize = 256;

/// Handles the leases of a previous process. Only for a database that one process at a time uses.
/// An all-in-one sent its notifications itself, so they can be leased again at once; the
/// dispatchers of a separate core may still be sending theirs.
pub(crate) async fn recover_orphaned_leases(
    storage: &Storage,
    all_in_one: bool,
    now: Timestamp,
) -> Result<(), Error> {
    storage
        .write(move |transaction| async move {
            if all_in_one {
                storage::notifications::release_all(&transaction, now).await?;
            } else {
                storage::notifications::renew_all(&transaction, LEASE_DURATION).await?;
            }
            storage::webhooks::release_all_hosts(&transaction).await?;
            Ok(())
        })
        .await
}

impl Queue {
    /// Makes leased notifications that were not sent pending again.
    pub(super) async fn release(&self, leases: Vec<Lease>) -> Result<(), Error> {
        let now = self.clock.now();
        let mut released = 0;
        for leases in leases.chunks(MAX_LEASES_PER_STATEMENT) {
            let leases = leases.to_vec();
            released += self
                .storage
                .write(move |transaction| async move {
                    storage::notifications::release(&transaction, &leases, now).await
                })
                .await?;
        }
        if released > 0 {
            self.streams.wake();
        }
        Ok(())
    }

    /// Releases expired leases, and those of pre-leased notifications that were not sent, until
    /// all streams are closed.
    pub(crate) async fn release_leases(
        self: Arc<Self>,
        mut unsent_leases: UnsentLeases,
        streams_closed: CancellationToken,
    ) {
        let mut changes = self.clock.manual_changes();
        let mut poll = tokio::time::interval(LEASE_DURATION / 12);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut leases = Vec::new();
            tokio::select! {
                first = unsent_leases.recv() => leases.extend(first),
                () = streams_closed.cancelled() => {
                    leases.extend(std::iter::from_fn(|| unsent_leases.try_recv().ok()));
                    self.release_unsent(leases).await;
                    return;
                }
                _ = poll.tick() => self.release_expired().await,
                () = changes.next() => self.release_expired().await,
            }
            leases.extend(std::iter::from_fn(|| unsent_leases.try_recv().ok()));
            self.release_unsent(leases).await;
        }
    }

    pub(super) async fn release_unsent(&self, leases: Vec<Lease>) {
        if leases.is_empty() {
            return;
        }
        if let Err(error) = self.release(leases).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot release leases, they will expire"
            );
        }
        // Their credit is free, also if the transaction that inserted them was rolled back.
        self.streams.capacity_freed.notify_one();
    }

    async fn release_expired(&self) {
        match self.try_release_expired().await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "leases expired without an outcome");
                self.streams.wake();
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot release expired leases"
            ),
        }
    }

    async fn try_release_expired(&self) -> Result<u64, Error> {
        if !storage::notifications::is_any_expired(self.storage.reader()).await? {
            return Ok(0);
        }
        let now = self.clock.now();
        let released = self.storage.write(move |transaction| async move {
            storage::notifications::release_expired(&transaction, now).await
        });
        Ok(released.await?)
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use tokio::sync::mpsc;

    use super::{super::fixture::queue, *};

    #[tokio::test]
    async fn a_released_notification_is_due_and_wakes_the_streams_once() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let lease = queue.lease_one(LEASE_DURATION).await;
        let mut notifications_ready = queue.streams.notifications_ready.subscribe();
        assert!(!queue.is_any_due().await);

        for is_released in [true, false] {
            queue.release(vec![lease]).await.unwrap();

            assert!(queue.is_any_due().await);
            assert_eq!(notifications_ready.has_changed().unwrap(), is_released);
            notifications_ready.mark_unchanged();
        }
    }

    #[tokio::test]
    async fn expired_leases_are_released_while_streams_are_open() {
        let (_directory, queue, _unsent_leases) = queue().await;
        queue.lease_one(Duration::ZERO).await;
        let mut notifications_ready = queue.streams.notifications_ready.subscribe();
        let (_unsent, unsent_leases) = mpsc::unbounded_channel();
        let streams_closed = CancellationToken::new();
        let mut running =
            pin!(Arc::clone(&queue).release_leases(unsent_leases, streams_closed.clone()));

        for is_first in [true, false] {
            if !is_first {
                // The poll comes again after a twelfth of the lease.
                queue.lease_one(Duration::ZERO).await;
                tokio::time::pause();
                tokio::time::advance(LEASE_DURATION / 12).await;
                tokio::time::resume();
            }
            tokio::select! {
                () = running.as_mut() => panic!("a stream is open"),
                changed = notifications_ready.changed() => changed.unwrap(),
                () = tokio::time::sleep(LEASE_DURATION / 12) => panic!("no lease is released"),
            }
        }

        assert!(queue.is_any_due().await);
        streams_closed.cancel();
        running.await;
    }

    #[tokio::test]
    async fn notifications_that_were_not_sent_are_released_when_the_streams_close() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let lease = queue.lease_one(LEASE_DURATION).await;
        let (unsent, unsent_leases) = mpsc::unbounded_channel();
        let streams_closed = CancellationToken::new();
        unsent.send(lease).unwrap();
        streams_closed.cancel();

        Arc::clone(&queue)
            .release_leases(unsent_leases, streams_closed)
            .await;

        assert!(queue.is_any_due().await);
    }
}
