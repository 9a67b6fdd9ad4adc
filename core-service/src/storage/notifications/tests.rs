//! Leases, outcomes and the schedule, against a real database.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::*;
use crate::{
    domain::{
        event::EventName,
        id::{ApiClientId, DeliveryId, StoreId, WebhookId},
        notification::Outcome,
        webhook::Webhook,
    },
    storage::{Storage, fixture, webhooks},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LONG: Duration = Duration::from_hours(1);

struct Owed {
    _directory: tempfile::TempDir,
    storage: Arc<Storage>,
    store_id: StoreId,
    webhook_id: WebhookId,
}

/// A store with one webhook, and one notification owed to it.
async fn one_owed() -> Owed {
    let (directory, storage) = fixture::sqlite().await;
    let webhook = Webhook {
        id: WebhookId::new(),
        store_id: StoreId::new(),
        api_client_id: ApiClientId::new(),
        event: EventName::DeliveryCompleted,
        url: "https://shop.example/hook".to_owned(),
        created_at: NOW,
        disabled_at: None,
    };
    let (store_id, webhook_id) = (webhook.store_id, webhook.id);
    let owed = storage
        .write(move |transaction| {
            let webhook = webhook.clone();
            Box::pin(async move {
                webhooks::insert(transaction, &webhook, b"sealed").await?;
                let events = [EventName::DeliveryPicked, EventName::DeliveryCompleted];
                let delivery_id = DeliveryId::new();
                Ok(record_events(transaction, store_id, delivery_id, &events, NOW).await?)
            })
        })
        .await
        .unwrap();
    assert!(owed, "of two events, the webhook asks for one");
    Owed {
        _directory: directory,
        storage,
        store_id,
        webhook_id,
    }
}

impl Owed {
    async fn claim_for(&self, lease: Duration, now: Timestamp) -> Vec<(Uuid, Claimed)> {
        let token = Uuid::now_v7();
        let claimed = self
            .storage
            .write(move |transaction| {
                Box::pin(async move { Ok(claim(transaction, 10, (token, lease), now).await?) })
            })
            .await
            .unwrap()
            .claimed;
        claimed
            .into_iter()
            .map(|claimed| (token, claimed))
            .collect()
    }

    async fn claim(&self, now: Timestamp) -> Vec<(Uuid, Claimed)> {
        self.claim_for(LONG, now).await
    }

    async fn report(&self, held: &(Uuid, Claimed), status: Option<u16>) -> usize {
        let report = Report {
            id: held.1.id,
            lease_token: held.0,
            outcome: match status {
                Some(200) => Outcome::Delivered,
                status => Outcome::Failed {
                    status,
                    retry_after: None,
                },
            },
            status,
            failure: (status != Some(200)).then_some("status"),
            duration: 1,
            answer: String::new(),
            jitter: 0,
        };
        let counted = self
            .storage
            .write(move |transaction| {
                let reports = [report.clone()];
                Box::pin(async move { Ok(record(transaction, &reports, NOW).await?) })
            })
            .await
            .unwrap();
        counted.len()
    }

    async fn release(&self) -> u64 {
        self.storage
            .write(|transaction| Box::pin(async move { Ok(release_expired(transaction).await?) }))
            .await
            .unwrap()
    }
}

fn later(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

#[tokio::test]
async fn what_is_due_is_claimed_once_and_what_is_delivered_never_again() {
    let owed = one_owed().await;
    assert!(is_any_due(owed.storage.reader(), NOW).await.unwrap());
    assert!(owed.claim(later(-1)).await.is_empty(), "not due yet");

    let claimed = owed.claim(NOW).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].1.event, "delivery.completed");
    assert_eq!(claimed[0].1.target.webhook_id, owed.webhook_id);
    assert!(
        owed.claim(later(1_000_000)).await.is_empty(),
        "held by another"
    );

    assert_eq!(owed.report(&claimed[0], Some(200)).await, 1);
    assert!(owed.claim(later(1_000_000)).await.is_empty());
    assert_eq!(owed.report(&claimed[0], Some(500)).await, 0, "told twice");
}

#[tokio::test]
async fn what_failed_is_due_again_by_the_schedule() {
    let owed = one_owed().await;
    let claimed = owed.claim(NOW).await;

    assert_eq!(owed.report(&claimed[0], Some(500)).await, 1);

    assert!(owed.claim(later(4)).await.is_empty());
    let again = owed.claim(later(5)).await;
    assert_eq!(again[0].1.id, claimed[0].1.id, "the same notification");
    assert_eq!(again[0].1.attempts, 1);
}

#[tokio::test]
async fn a_lease_that_is_over_is_taken_over_and_its_outcome_changes_nothing() {
    let owed = one_owed().await;
    let lost = owed.claim_for(Duration::ZERO, NOW).await;

    assert!(is_any_expired(owed.storage.reader()).await.unwrap());
    assert_eq!(owed.release().await, 1);
    let taken_over = owed.claim(NOW).await;

    assert_eq!(taken_over[0].1.id, lost[0].1.id);
    assert_eq!(owed.report(&lost[0], Some(200)).await, 0);
    assert_eq!(owed.release().await, 0, "the new lease goes on");
    assert_eq!(owed.report(&taken_over[0], Some(200)).await, 1);
}

#[tokio::test]
async fn a_receiver_that_is_gone_hears_no_more() {
    let owed = one_owed().await;
    let claimed = owed.claim(NOW).await;

    owed.report(&claimed[0], Some(410)).await;

    let store_id = owed.store_id;
    let still_owed = owed
        .storage
        .write(move |transaction| {
            Box::pin(async move {
                let events = [EventName::DeliveryCompleted];
                let delivery_id = DeliveryId::new();
                Ok(record_events(transaction, store_id, delivery_id, &events, NOW).await?)
            })
        })
        .await
        .unwrap();
    assert!(!still_owed);
    assert!(owed.claim(later(1_000_000)).await.is_empty());
}
