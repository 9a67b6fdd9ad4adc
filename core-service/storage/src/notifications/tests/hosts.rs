//! Hosts of unproven webhooks, on both databases.

use std::collections::BTreeSet;

use domain::scheduling::FAILURE_RETENTION;

use super::{claims::counts, *};
use crate::entity::receiver_host;

const HOST: &str = "shop.example:443";

/// A store on each database, with unproven webhooks at one host.
async fn stores_with_unproven_webhooks(webhooks: usize) -> Vec<(TestStore, Vec<WebhookId>)> {
    let mut stores = Vec::new();
    for store in [Some(TestStore::new().await), TestStore::on_postgres().await] {
        let Some(store) = store else { continue };
        let ids = store.add_unproven_webhooks(webhooks).await;
        stores.push((store, ids));
    }
    stores
}

impl TestStore {
    async fn add_unproven_webhooks(&self, count: usize) -> Vec<WebhookId> {
        let mut ids = Vec::new();
        for _ in 0..count {
            let id = WebhookId::new();
            self.add_unproven_webhook(id, HOST).await;
            ids.push(id);
        }
        ids
    }

    /// Another store in the same database.
    fn another(&self) -> Self {
        Self {
            store_id: StoreId::new(),
            ..self.handle()
        }
    }

    async fn is_any_claimable(&self, now: Timestamp) -> bool {
        let reader = self.storage.reader();
        let is_any_due = is_any_due(reader, now).await.unwrap();
        let claimable = is_any_claimable(reader, &budget(10), now).await.unwrap();
        assert_eq!(claimable, is_any_due, "what waits for its host is not due");
        claimable
    }
}

#[tokio::test]
async fn unproven_webhooks_of_a_store_at_a_host_have_one_notification_in_flight() {
    for (store, _) in stores_with_unproven_webhooks(3).await {
        let other = store.another();
        other.add_unproven_webhooks(3).await;
        store.complete(2, NOW).await;
        other.complete(2, NOW).await;

        let leased = store.claim(NOW).await;
        let stores: BTreeSet<_> = leased
            .iter()
            .map(|claimed| claimed.target.key.store_id)
            .collect();
        assert_eq!((leased.len(), stores.len()), (2, 2), "one of each store");

        assert!(!store.is_any_claimable(later(3600)).await);
        assert!(store.claim(later(3600)).await.is_empty());
    }
}

#[tokio::test]
async fn from_the_fourth_failure_on_the_pause_of_a_host_doubles_up_to_a_minute() {
    for (store, _) in stores_with_unproven_webhooks(100).await {
        store.complete(10, NOW).await;
        let mut now = NOW;
        let mut starts = Vec::new();
        while now < later(600) {
            let leased = store.claim(now).await;
            if !leased.is_empty() {
                assert_eq!(leased.len(), 1);
                store.report_all(&leased, &server_error(), now).await;
                starts.push(now.as_second());
            }
            now += SignedDuration::from_secs(1);
        }

        // Each attempt is the first of its webhook, so that no retry delay counts.
        let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let expected = [1, 1, 1, 3, 6, 12, 24, 48].into_iter().chain([60; 8]);
        assert_eq!(pauses, expected.collect::<Vec<_>>());
    }
}

/// Otherwise those that fail would delay a new one for hours.
#[tokio::test]
async fn a_webhook_without_attempts_comes_before_those_that_failed() {
    for (store, ids) in stores_with_unproven_webhooks(70).await {
        store.complete(1, NOW).await;
        let mut now = NOW;
        for _ in &ids {
            let leased = store.claim(now).await;
            assert_eq!(leased.len(), 1, "{now}");
            store.report_all(&leased, &server_error(), now).await;
            now += SignedDuration::from_mins(1);
        }
        let new = store.add_unproven_webhooks(1).await;
        store.complete(1, now).await;

        // The pause ended this moment.
        let leased = store.claim(now).await;

        assert_eq!(counts(&leased, &new), [1]);
    }
}

#[tokio::test]
async fn an_accepted_notification_proves_all_webhooks_of_its_store_at_the_host() {
    for (store, ids) in stores_with_unproven_webhooks(2).await {
        let other = store.another();
        other.add_unproven_webhooks(1).await;
        store.complete(40, NOW).await;
        other.complete(40, NOW).await;
        let (leased, of_other): (Vec<_>, Vec<_>) = store
            .claim(NOW)
            .await
            .into_iter()
            .partition(|claimed| claimed.target.key.store_id == store.store_id);
        assert_eq!((leased.len(), of_other.len()), (1, 1));

        store.report_all(&leased, &Outcome::Delivered, NOW).await;

        let more = store.claim_for(LONG_LEASE, 128, NOW).await;
        let of_first = counts(&more, &ids);
        let first = usize::from(counts(&leased, &ids)[0] == 0);
        let mut expected = [1, 1];
        expected[first] = 32;
        assert_eq!(of_first, expected, "the second has had no attempt yet");
        assert_eq!(more.len(), 33, "and none of the other store");
        let new = store.add_unproven_webhooks(1).await;
        assert!(store.row(new[0]).await.is_proven);
        assert!(
            !other
                .row(other.add_unproven_webhooks(1).await[0])
                .await
                .is_proven
        );
    }
}

#[tokio::test]
async fn a_webhook_that_only_fails_for_a_minute_becomes_unproven_and_others_at_its_host_do_not() {
    for (store, ids) in stores_with_unproven_webhooks(2).await {
        store.complete(1, NOW).await;
        let leased = store.claim(NOW).await;
        store.report_all(&leased, &Outcome::Delivered, NOW).await;
        let leased = store.claim(NOW).await;
        let failing = leased[0].target.key.webhook_id;
        store.report_all(&leased, &server_error(), NOW).await;
        for (seconds, expected) in [(59, true), (400, false)] {
            let leased = store.claim(later(seconds)).await;
            store
                .report_all(&leased, &server_error(), later(seconds))
                .await;
            assert_eq!(store.row(failing).await.is_proven, expected, "{seconds}");
        }
        let proven = ids.into_iter().find(|id| *id != failing).unwrap();
        assert!(store.row(proven).await.is_proven);

        // What the other one accepts proves nothing about it.
        store.complete(3, later(400)).await;
        let leased = store.claim(later(400)).await;
        assert_eq!(counts(&leased, &[proven, failing]), [3, 1]);
        let (of_failing, leased): (Vec<_>, Vec<_>) = leased
            .into_iter()
            .partition(|claimed| claimed.target.key.webhook_id == failing);
        store
            .report_all(&leased, &Outcome::Delivered, later(400))
            .await;
        assert!(!store.row(failing).await.is_proven);
        store
            .report_all(&of_failing, &Outcome::Delivered, later(400))
            .await;
        assert!(store.row(failing).await.is_proven);
    }
}

/// The clock does not advance: only the release frees the host.
#[tokio::test]
async fn a_notification_that_was_not_sent_frees_its_host() {
    for (store, _) in stores_with_unproven_webhooks(1).await {
        store.complete(2, NOW).await;
        let leased = store.claim(NOW).await;
        let unsent = [leased[0].lease];
        let released = store
            .write(move |transaction| async move { release(&transaction, &unsent, NOW).await })
            .await;

        assert_eq!(released, 1);
        assert_eq!(store.claim(NOW).await.len(), 1);
        store
            .write(
                move |transaction| async move { webhooks::release_all_hosts(&transaction).await },
            )
            .await;
        assert!(
            store.claim(NOW).await.is_empty(),
            "the webhook has one in flight"
        );
    }
}

#[tokio::test]
async fn old_failures_are_removed() {
    for (store, _) in stores_with_unproven_webhooks(1).await {
        store.complete(2, NOW).await;
        let leased = store.claim(NOW).await;
        store.report_all(&leased, &server_error(), NOW).await;
        let count = async |now| {
            store
                .write(move |transaction| async move {
                    webhooks::remove_old_failures(&transaction, now).await
                })
                .await;
            receiver_host::Entity::find()
                .count(store.storage.reader())
                .await
                .unwrap()
        };

        let long_after = NOW + FAILURE_RETENTION;
        assert_eq!(count(long_after).await, 1);
        let longer_after = long_after + SignedDuration::from_micros(1);
        assert_eq!(count(longer_after).await, 0);
    }
}

#[tokio::test]
async fn webhooks_of_a_store_with_an_exhausted_share_are_not_eligible() {
    for (store, _) in stores_with_unproven_webhooks(0).await {
        let other = store.another();
        let (id, other_id) = (store.add_webhook().await, other.add_webhook().await);
        store.complete(1, NOW).await;
        other.complete(1, NOW).await;
        let mut budget = budget(10);
        budget
            .slow_by_store
            .insert(store.store_id, budget.slow_per_store);

        let leased = store.claim_within(budget, LONG_LEASE, NOW).await;

        assert_eq!(counts(&leased, &[id, other_id]), [0, 1]);
    }
}

/// Otherwise a webhook whose receiver only fails would stay proven if it is disabled and enabled.
#[tokio::test]
async fn a_failing_webhook_that_is_enabled_is_unproven_and_a_new_one_at_its_host_too() {
    for (store, _) in stores_with_unproven_webhooks(0).await {
        let id = store.add_webhook().await;
        store.complete(1, NOW).await;
        let leased = store.claim(NOW).await;
        store.report_all(&leased, &server_error(), NOW).await;
        let enable = async || {
            let key = store.key(id);
            store
                .write(move |transaction| async move {
                    let found = webhooks::find_and_lock(&transaction, key).await?;
                    let (mut webhook, _) = found.unwrap();
                    webhook.disabled = None;
                    webhooks::save_disabled(&transaction, &webhook).await
                })
                .await;
            store.row(id).await.is_proven
        };

        assert!(store.row(id).await.is_proven);

        assert!(!enable().await);

        // A new webhook is not proven by another one at its host while an unproven one fails there.
        let row = store.row(id).await;
        let other = WebhookId::new();
        store.add_unproven_webhook(other, &row.host).await;
        let proven = webhook::ActiveModel {
            store_id: Set(store.store_id.0),
            id: Set(other.0),
            is_proven: Set(true),
            ..Default::default()
        };
        proven.update(store.storage.reader()).await.unwrap();
        let leased = store.claim(later(10)).await;
        store.report_all(&leased, &server_error(), later(10)).await;
        let new = WebhookId::new();
        store.add_unproven_webhook(new, &row.host).await;
        assert!(!store.row(new).await.is_proven);
    }
}
