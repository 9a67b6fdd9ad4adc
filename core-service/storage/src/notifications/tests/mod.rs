//! Leases, outcomes, the schedule and the queue, against a real database.

mod concurrency;
mod deadlocks;
mod ending;
mod fairness;
mod leases;
mod leftover;
mod listing;
mod outcomes;
mod recovery;
mod retention;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{
    event::EventName,
    fairness::{Places, Room},
    id::{ApiClientId, DeliveryId, NotificationId, StoreId, WebhookId},
    notification::{Failure, Outcome},
    webhook::{Disabled, DisabledReason, Webhook},
    webhook_secrets::Secrets,
};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveModelTrait as _, ActiveValue::Set, ColumnTrait as _, EntityTrait as _,
    PaginatorTrait as _, QueryFilter as _,
};
use uuid::Uuid;

use super::*;
use process::clock::Clock;

use crate::{
    DatabaseTransaction, Error, Storage,
    entity::{attempt, notification, webhook},
    fixture, webhooks,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LONG: Duration = Duration::from_hours(1);
const DISABLE_AFTER: SignedDuration = SignedDuration::from_hours(5 * 24);

fn later(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// A store and its webhooks, each for the same event.
struct Shop {
    _directory: Option<tempfile::TempDir>,
    storage: Arc<Storage>,
    store_id: StoreId,
    /// How many transactions had to be begun again: on `PostgreSQL`, because of deadlocks.
    repeats: Arc<AtomicUsize>,
}

/// A notification under a lease.
type Held = (Uuid, Claimed);

impl Shop {
    async fn new() -> Self {
        let (directory, storage) = fixture::sqlite().await;
        Self {
            _directory: Some(directory),
            storage,
            store_id: StoreId::new(),
            repeats: Arc::default(),
        }
    }

    /// One whose transactions run beside each other; none without `PostgreSQL`.
    async fn on_postgres() -> Option<Self> {
        Some(Self {
            _directory: None,
            storage: fixture::postgres().await?,
            store_id: StoreId::new(),
            repeats: Arc::default(),
        })
    }

    /// Does work in a transaction, and counts how often it had to be begun again.
    async fn write<T, W>(&self, work: W) -> T
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, Error>>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
    {
        let (is_begun, repeats) = (AtomicBool::new(false), Arc::clone(&self.repeats));
        self.storage
            .write(move |transaction| {
                if is_begun.swap(true, Ordering::SeqCst) {
                    repeats.fetch_add(1, Ordering::SeqCst);
                }
                work(transaction)
            })
            .await
            .unwrap()
    }

    async fn with_a_webhook() -> (Self, WebhookId) {
        let shop = Self::new().await;
        let id = shop.add_webhook().await;
        (shop, id)
    }

    async fn add_webhook(&self) -> WebhookId {
        let webhook = Webhook {
            id: WebhookId::new(),
            store_id: self.store_id,
            api_client_id: ApiClientId::new(),
            event: EventName::DeliveryCompleted,
            url: "https://shop.example/hook".to_owned(),
            created_at: NOW,
            overlap_ends_at: None,
            disabled: None,
            missed: None,
        };
        let id = webhook.id;
        self.storage
            .write(move |transaction| {
                let webhook = webhook.clone();
                Box::pin(async move {
                    let secrets = Secrets::new(b"sealed".to_vec());
                    webhooks::insert(transaction, &webhook, &secrets).await?;
                    Ok::<_, Error>(())
                })
            })
            .await
            .unwrap();
        id
    }

    /// Deliveries are picked and completed: each owes one to every webhook. How many are owed.
    async fn complete(&self, deliveries: usize, now: Timestamp) -> usize {
        // A write has a time to end by, on a busy machine too.
        const AT_ONCE: usize = 500;
        let mut count = 0;
        for first in (0..deliveries).step_by(AT_ONCE) {
            let some = (deliveries - first).min(AT_ONCE);
            count += self.complete_at_once(some, now).await;
        }
        count
    }

    async fn complete_at_once(&self, deliveries: usize, now: Timestamp) -> usize {
        let store_id = self.store_id;
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    let mut count = 0;
                    for _ in 0..deliveries {
                        let events = [EventName::DeliveryPicked, EventName::DeliveryCompleted];
                        let of = DeliveryId::new();
                        let owed = record_events(transaction, store_id, of, &events, now).await?;
                        let owed: Vec<_> = owed.into_iter().map(|owed| (owed, None)).collect();
                        insert(transaction, &owed, LONG, now).await?;
                        count += owed.len();
                    }
                    Ok::<_, Error>(count)
                })
            })
            .await
            .unwrap()
    }

    async fn claim_for(&self, lease: Duration, free: u32, now: Timestamp) -> Vec<Held> {
        self.claim_within(room(free), lease, now).await
    }

    async fn claim(&self, now: Timestamp) -> Vec<Held> {
        self.claim_for(LONG, 10, now).await
    }

    async fn claim_within(&self, room: Room, lease: Duration, now: Timestamp) -> Vec<Held> {
        let token = Uuid::now_v7();
        let claimed = self
            .write(move |transaction| {
                Box::pin(async move { claim(transaction, &room, (token, lease), now).await })
            })
            .await
            .claimed;
        claimed
            .into_iter()
            .map(|claimed| (token, claimed))
            .collect()
    }

    /// Reports how attempts ended, in one batch. How many counted.
    async fn report(&self, outcomes: &[(&Held, Outcome)], now: Timestamp) -> usize {
        self.report_after(Duration::ZERO, outcomes, now).await
    }

    /// As [`Shop::report`], of attempts that took so long.
    async fn report_after(
        &self,
        duration: Duration,
        outcomes: &[(&Held, Outcome)],
        now: Timestamp,
    ) -> usize {
        let recorded = self.record(duration, outcomes, now).await;
        recorded.attempts.len()
    }

    /// What reports in one batch, of attempts that took so long, bring about.
    async fn record(
        &self,
        duration: Duration,
        outcomes: &[(&Held, Outcome)],
        now: Timestamp,
    ) -> Recorded {
        let reports: Vec<_> = outcomes
            .iter()
            .map(|((token, claimed), outcome)| Report {
                id: claimed.id,
                lease_token: *token,
                outcome: outcome.clone(),
                status: None,
                duration,
                answer: String::new(),
                jitter: 0,
            })
            .collect();
        self.write(move |transaction| {
            let reports = reports.clone();
            Box::pin(async move {
                let recorded = record(transaction, &reports, DISABLE_AFTER, now).await?;
                insert_attempts(transaction, &recorded.attempts).await?;
                Ok(recorded)
            })
        })
        .await
    }

    /// Reports that all ended so.
    async fn report_all(&self, held: &[Held], outcome: &Outcome, now: Timestamp) {
        let outcomes: Vec<_> = held.iter().map(|held| (held, outcome.clone())).collect();
        assert_eq!(self.report(&outcomes, now).await, held.len());
    }

    /// A webhook's receiver has answered before.
    async fn has_answered(&self, now: Timestamp) {
        self.complete(1, now).await;
        let held = self.claim(now).await;
        self.report_all(&held, &Outcome::Delivered, now).await;
    }

    /// A webhook is disabled, or enabled.
    async fn set_enabled(&self, id: WebhookId, enabled: bool, now: Timestamp) {
        let store_id = self.store_id;
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    let found = webhooks::find_and_lock(transaction, store_id, id).await?;
                    let (mut webhook, _) = found.unwrap();
                    let is_new = if enabled {
                        webhook.enable(now)
                    } else {
                        webhook.disable(Disabled {
                            at: now,
                            reason: DisabledReason::Client,
                        })
                    };
                    assert!(is_new);
                    webhooks::save_disabled(transaction, &webhook).await?;
                    drop_backlog(transaction, &webhook, now).await?;
                    Ok::<_, Error>(())
                })
            })
            .await
            .unwrap();
    }

    /// Disables a webhook and nothing more, as if what is owed to it came to be so just then.
    async fn disable_alone(&self, id: WebhookId) {
        let row = webhook::ActiveModel {
            store_id: Set(self.store_id.0),
            id: Set(id.0),
            disabled_at: Set(Some(NOW.into())),
            ..Default::default()
        };
        row.update(self.storage.reader()).await.unwrap();
    }

    async fn release_expired(&self) -> u64 {
        self.write(|transaction| Box::pin(async move { release_expired(transaction, NOW).await }))
            .await
    }

    async fn count(&self, state: &str) -> u64 {
        notification::Entity::find()
            .filter(notification::Column::State.eq(state))
            .count(self.storage.reader())
            .await
            .unwrap()
    }

    async fn place(&self, id: WebhookId) -> Option<Timestamp> {
        self.row(id)
            .await
            .next_due_at
            .map(|due| due.try_into().unwrap())
    }

    async fn row(&self, id: WebhookId) -> webhook::Model {
        webhook::Entity::find_by_id((self.store_id.0, id.0))
            .one(self.storage.reader())
            .await
            .unwrap()
            .unwrap()
    }
}

/// So many places free, of any kind.
fn room(free: u32) -> Room {
    Room {
        places: Places(256),
        free,
        free_for_new: free,
        free_for_slow: free,
    }
}

fn failed(failure: Failure, status: Option<u16>) -> Outcome {
    Outcome::Failed {
        failure,
        status,
        retry_after: None,
    }
}

fn refused() -> Outcome {
    failed(Failure::Status, Some(500))
}

fn timed_out() -> Outcome {
    failed(Failure::Timeout, None)
}
