//! Claims, leases, outcomes, the retry schedule and the queue, against a real database.

mod backlog_cleanup;
mod claims;
mod concurrency;
mod deadlocks;
mod disabling;
mod hosts;
mod leases;
mod listing;
mod outcomes;
mod recovery;
mod retention;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{
    event::EventName,
    id::{ApiClientId, DeliveryId, NotificationId, StoreId, WebhookId},
    notification::{Failure, Outcome},
    scheduling::{Capacity, ClaimBudget},
    webhook::{Disabled, DisabledReason, Webhook, WebhookKey},
    webhook_secrets::Secrets,
};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveModelTrait as _, ActiveValue::Set, ColumnTrait as _, EntityTrait as _,
    PaginatorTrait as _, QueryFilter as _,
};
use uuid::Uuid;

use super::*;
use process::clock::Clock;

use crate::{
    Error, Session, Storage, Work,
    entity::{attempt, notification, webhook},
    fixture, webhooks,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LONG_LEASE: Duration = Duration::from_hours(1);
const DISABLE_AFTER: SignedDuration = SignedDuration::from_hours(5 * 24);

fn later(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// A store and its webhooks, each for the same event.
struct TestStore {
    _directory: Option<tempfile::TempDir>,
    storage: Arc<Storage>,
    store_id: StoreId,
    /// How many transactions were retried: on `PostgreSQL`, because of deadlocks.
    retries: Arc<AtomicUsize>,
}

impl TestStore {
    async fn new() -> Self {
        let (directory, storage) = fixture::sqlite().await;
        Self {
            _directory: Some(directory),
            storage,
            store_id: StoreId::new(),
            retries: Arc::default(),
        }
    }

    /// A store with concurrent transactions; `None` without `PostgreSQL`.
    async fn on_postgres() -> Option<Self> {
        Some(Self {
            _directory: None,
            storage: fixture::postgres().await?,
            store_id: StoreId::new(),
            retries: Arc::default(),
        })
    }

    /// Runs work in a transaction, and counts the retries.
    async fn write<T>(&self, work: impl Work<Result<T, Error>>) -> T
    where
        T: Send + 'static,
    {
        let (was_run, retries) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.retries));
        self.storage
            .write(move |transaction| async move {
                if was_run.swap(true, Ordering::SeqCst) {
                    retries.fetch_add(1, Ordering::SeqCst);
                }
                work(transaction).await
            })
            .await
            .unwrap()
    }

    async fn with_a_webhook() -> (Self, WebhookId) {
        let store = Self::new().await;
        let id = store.add_webhook().await;
        (store, id)
    }

    fn key(&self, webhook_id: WebhookId) -> WebhookKey {
        let store_id = self.store_id;
        WebhookKey {
            store_id,
            webhook_id,
        }
    }

    /// Adds a proven webhook at a host of its own.
    async fn add_webhook(&self) -> WebhookId {
        let id = WebhookId::new();
        self.add_unproven_webhook(id, &format!("{id}.example:443"))
            .await;
        let row = webhook::ActiveModel {
            store_id: Set(self.store_id.0),
            id: Set(id.0),
            is_proven: Set(true),
            ..Default::default()
        };
        row.update(self.storage.reader()).await.unwrap();
        id
    }

    async fn add_unproven_webhook(&self, id: WebhookId, host: &str) {
        let webhook = Webhook {
            id,
            store_id: self.store_id,
            api_client_id: ApiClientId::new(),
            event: EventName::DeliveryCompleted.as_str().to_owned(),
            url: format!("https://{host}/hook"),
            host: host.to_owned(),
            created_at: NOW,
            overlap_ends_at: None,
            disabled: None,
            last_disabled_period: None,
        };
        self.storage
            .write(move |transaction| async move {
                let secrets = Secrets::new(b"encrypted".to_vec());
                webhooks::insert(&transaction, &webhook, &secrets).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
    }

    /// Inserts the event of completing a delivery. Returns its notifications, which are not inserted.
    async fn record_completion(&self, now: Timestamp) -> Vec<NewNotification> {
        let store_id = self.store_id;
        self.write(move |transaction| async move {
            let change = fixture::delivery_events(store_id, &[EventName::DeliveryCompleted]);
            record_events(&transaction, change, now).await
        })
        .await
    }

    /// Inserts the events of picking and completing deliveries: one notification per delivery and
    /// webhook. Returns the number of notifications.
    async fn complete(&self, deliveries: usize, now: Timestamp) -> usize {
        // Small enough for the write timeout on a busy machine.
        const BATCH: usize = 500;
        let mut count = 0;
        for first in (0..deliveries).step_by(BATCH) {
            let batch = (deliveries - first).min(BATCH);
            count += self.complete_batch(batch, now).await;
        }
        count
    }

    async fn complete_batch(&self, deliveries: usize, now: Timestamp) -> usize {
        let store_id = self.store_id;
        self.storage
            .write(move |transaction| async move {
                let mut count = 0;
                for _ in 0..deliveries {
                    let events = [EventName::DeliveryPicked, EventName::DeliveryCompleted];
                    let new = record_events(
                        &transaction,
                        fixture::delivery_events(store_id, &events),
                        now,
                    )
                    .await?;
                    insert(&transaction, &new, LONG_LEASE, now).await?;
                    count += new.len();
                }
                Ok::<_, Error>(count)
            })
            .await
            .unwrap()
    }

    async fn claim_for(
        &self,
        lease: Duration,
        free: u32,
        now: Timestamp,
    ) -> Vec<ClaimedNotification> {
        self.claim_within(budget(free), lease, now).await
    }

    async fn claim(&self, now: Timestamp) -> Vec<ClaimedNotification> {
        self.claim_for(LONG_LEASE, 10, now).await
    }

    async fn claim_within(
        &self,
        budget: ClaimBudget,
        lease: Duration,
        now: Timestamp,
    ) -> Vec<ClaimedNotification> {
        let batch =
            self.write(
                move |transaction| async move { claim(&transaction, &budget, lease, now).await },
            );
        batch.await.claimed
    }

    /// Reports outcomes in one batch. Returns how many were applied.
    async fn report(&self, outcomes: &[(&ClaimedNotification, Outcome)], now: Timestamp) -> usize {
        self.report_with_duration(Duration::ZERO, outcomes, now)
            .await
    }

    /// Like [`TestStore::report`], for attempts of this duration.
    async fn report_with_duration(
        &self,
        duration: Duration,
        outcomes: &[(&ClaimedNotification, Outcome)],
        now: Timestamp,
    ) -> usize {
        let applied = self.apply_outcomes(duration, outcomes, now).await;
        applied.attempts.len()
    }

    /// Applies outcomes of attempts of this duration in one batch.
    async fn apply_outcomes(
        &self,
        duration: Duration,
        outcomes: &[(&ClaimedNotification, Outcome)],
        now: Timestamp,
    ) -> AppliedOutcomes {
        let reports: Vec<_> = outcomes
            .iter()
            .map(|(claimed, outcome)| AttemptReport {
                lease: claimed.lease,
                outcome: outcome.clone(),
                status: None,
                duration,
                response_body: String::new(),
                jitter: 0,
            })
            .collect();
        let applied = self
            .write(move |transaction| async move {
                let applied = apply_outcomes(&transaction, &reports, DISABLE_AFTER, now).await?;
                insert_attempts(&transaction, &applied.attempts).await?;
                Ok(applied)
            })
            .await;
        let hosts = applied.hosts.clone();
        self.write(move |transaction| async move {
            webhooks::record_host_outcomes(&transaction, &hosts, now).await
        })
        .await;
        applied
    }

    /// Reports the same outcome for all.
    async fn report_all(&self, leased: &[ClaimedNotification], outcome: &Outcome, now: Timestamp) {
        let outcomes: Vec<_> = leased
            .iter()
            .map(|leased| (leased, outcome.clone()))
            .collect();
        assert_eq!(self.report(&outcomes, now).await, leased.len());
    }

    /// Delivers one notification per webhook, so that the receivers are healthy.
    async fn make_healthy(&self, now: Timestamp) {
        self.complete(1, now).await;
        let leased = self.claim(now).await;
        self.report_all(&leased, &Outcome::Delivered, now).await;
    }

    /// Disables or enables a webhook.
    async fn set_enabled(&self, id: WebhookId, enabled: bool, now: Timestamp) {
        let key = self.key(id);
        self.storage
            .write(move |transaction| async move {
                let found = webhooks::find_and_lock(&transaction, key).await?;
                let (mut webhook, _) = found.unwrap();
                let has_changed = if enabled {
                    webhook.enable(now)
                } else {
                    webhook.disable(Disabled {
                        at: now,
                        reason: DisabledReason::Client,
                    })
                };
                assert!(has_changed);
                webhooks::save_disabled(&transaction, &webhook).await?;
                cancel_backlog(&transaction, &webhook, now).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
    }

    /// Disables a webhook without cancelling its notifications, as if they were enqueued
    /// concurrently.
    async fn disable_without_cancelling(&self, id: WebhookId) {
        let row = webhook::ActiveModel {
            store_id: Set(self.store_id.0),
            id: Set(id.0),
            disabled_at: Set(Some(NOW.into())),
            ..Default::default()
        };
        row.update(self.storage.reader()).await.unwrap();
    }

    async fn release_expired(&self) -> u64 {
        self.write(move |transaction| async move { release_expired(&transaction, NOW).await })
            .await
    }

    async fn count(&self, state: &str) -> u64 {
        notification::Entity::find()
            .filter(notification::Column::State.eq(state))
            .count(self.storage.reader())
            .await
            .unwrap()
    }

    /// The position of a webhook in the queue.
    async fn queue_position(&self, id: WebhookId) -> Option<Timestamp> {
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

/// A budget of `free` notifications for webhooks of either health.
fn budget(free: u32) -> ClaimBudget {
    ClaimBudget {
        capacity: Capacity(256),
        free,
        free_slow: free,
        slow_per_store: 32,
        slow_by_store: HashMap::new(),
        free_grown: 0,
        grown: HashMap::new(),
    }
}

fn failed(failure: Failure, status: Option<u16>) -> Outcome {
    Outcome::Failed {
        failure,
        status,
        retry_after: None,
    }
}

fn server_error() -> Outcome {
    failed(Failure::Status, Some(500))
}

fn timed_out() -> Outcome {
    failed(Failure::Timeout, None)
}
