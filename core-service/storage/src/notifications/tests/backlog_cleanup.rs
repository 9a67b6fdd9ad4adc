//! Backlogs that are longer than one batch of the cleanup, on both databases: the rest is never
//! sent, and cancelled in the end.

use std::collections::BTreeMap;

use super::{
    super::{backlog_cleanup::BATCH, queue::move_forward},
    deadlocks::gone,
    *,
};
use crate::{pages::Cursor, webhook_notifications::failed_after};

/// How many notifications a long backlog has beyond one batch of the cleanup.
const EXCESS: u64 = 3;

/// How many of two long backlogs and one retry are pending after one batch is cancelled.
const LEFT: u64 = BATCH + 2 * EXCESS + 1;

impl TestStore {
    async fn on_both_databases() -> Vec<Self> {
        let mut both = vec![Self::new().await];
        both.extend(Self::on_postgres().await);
        both
    }

    /// Inserts a long backlog of a webhook, due now.
    async fn insert_long_backlog(&self, webhook_id: WebhookId) {
        let (store_id, webhook) = (self.store_id, self.key(webhook_id));
        self.write(move |transaction| async move {
            let rows: Vec<_> = (0..BATCH + EXCESS)
                .map(|_| notification::ActiveModel {
                    store_id: Set(store_id.0),
                    id: Set(NotificationId::new().0),
                    event_id: Set(Uuid::now_v7()),
                    webhook_id: Set(webhook_id.0),
                    event: Set("delivery.completed".to_owned()),
                    delivery_id: Set(DeliveryId::new().0),
                    state: Set(PENDING.to_owned()),
                    attempts: Set(0),
                    attempts_at_resend: Set(0),
                    due_at: Set(NOW.into()),
                    lease_token: Set(None),
                    lease_expires_at: Set(None),
                    created_at: Set(NOW.into()),
                    finished_at: Set(None),
                    traceparent: Set(None),
                })
                .collect();
            for rows in rows.chunks(1000) {
                notification::Entity::insert_many(rows.to_vec())
                    .exec_without_returning(&transaction)
                    .await
                    .unwrap();
            }
            let due = BTreeMap::from([(webhook, NOW)]);
            assert_eq!(move_forward(&transaction, &due).await?.len(), 1);
            Ok(())
        })
        .await;
    }

    /// How many notifications of a webhook are in each state.
    async fn states(&self, webhook_id: WebhookId) -> BTreeMap<String, u64> {
        let rows = notification::Entity::find()
            .filter(notification::Column::WebhookId.eq(webhook_id.0))
            .all(self.storage.reader())
            .await
            .unwrap();
        rows.into_iter().fold(BTreeMap::new(), |mut states, row| {
            let is_finished = [DELIVERED, EXHAUSTED, CANCELLED].contains(&row.state.as_str());
            assert_eq!(row.finished_at.is_some(), is_finished, "{}", row.state);
            *states.entry(row.state).or_default() += 1;
            states
        })
    }

    /// Cancels a batch of any backlog. Returns whether there was one.
    async fn clean_up(&self) -> bool {
        cancel_backlog_batch(&self.storage, NOW).await.unwrap()
    }

    /// How many notifications a recovery would resend.
    async fn recoverable(&self, webhook_id: WebhookId) -> usize {
        let from = Cursor {
            created_at: NOW,
            id: Uuid::nil(),
        };
        failed_after(self.storage.reader(), self.key(webhook_id), from, 1_000_000)
            .await
            .unwrap()
            .len()
    }
}

fn states<const N: usize>(states: [(&str, u64); N]) -> BTreeMap<String, u64> {
    let state = |(state, count): (&str, _)| (state.to_owned(), count);
    states.into_iter().map(state).collect()
}

/// Two webhooks with two notifications in flight each. The first has two long backlogs, and its
/// receiver answers 410 Gone.
async fn gone_with_a_long_backlog(store: &TestStore) -> [WebhookId; 2] {
    let [id, other] = [store.add_webhook().await, store.add_webhook().await];
    store.make_healthy(NOW).await;
    store.complete(2, NOW).await;
    let leased = store.claim(NOW).await;
    let (of_gone, of_other): (Vec<_>, Vec<_>) = leased
        .iter()
        .partition(|claimed| claimed.target.key.webhook_id == id);
    store.insert_long_backlog(id).await;
    store.insert_long_backlog(id).await;

    let outcomes = [
        (of_gone[0], gone()),
        (of_gone[1], server_error()),
        (of_other[0], Outcome::Delivered),
        (of_other[1], server_error()),
    ];
    let applied = store.apply_outcomes(Duration::ZERO, &outcomes, NOW).await;
    assert_eq!(applied.gone, [store.key(id)]);
    assert_eq!(applied.attempts.len(), 4, "including the other webhook's");
    assert!(store.row(id).await.disabled_at.is_some());
    let of_other = states([("delivered", 2), ("pending", 1)]);
    assert_eq!(store.states(other).await, of_other);
    [id, other]
}

#[tokio::test]
async fn a_long_backlog_of_a_gone_receiver_does_not_delay_other_outcomes() {
    for store in TestStore::on_both_databases().await {
        let [id, other] = gone_with_a_long_backlog(&store).await;
        let mut expected = states([
            ("delivered", 1),
            ("exhausted", 1),
            ("cancelled", BATCH),
            ("pending", LEFT),
        ]);
        assert_eq!(store.states(id).await, expected);

        // No claim takes any of the rest.
        let long_after = later(1_000_000);
        let claimed = store.claim(long_after).await;
        let webhooks: Vec<_> = claimed
            .iter()
            .map(|claimed| claimed.target.key.webhook_id)
            .collect();
        assert_eq!(webhooks, [other]);
        let reader = store.storage.reader();
        assert!(!is_any_due(reader, long_after).await.unwrap());
        assert!(
            !is_any_claimable(reader, &budget(10), long_after)
                .await
                .unwrap()
        );
        assert_eq!(store.states(id).await, expected);

        assert!(store.clean_up().await);
        assert!(store.clean_up().await);
        assert!(!store.clean_up().await, "nothing is left");
        expected.remove("pending");
        expected.insert("cancelled".to_owned(), BATCH + LEFT);
        assert_eq!(store.states(id).await, expected);
    }
}

#[tokio::test]
async fn the_rest_of_a_backlog_is_not_sent_when_its_webhook_is_enabled() {
    for store in TestStore::on_both_databases().await {
        let [id, other] = gone_with_a_long_backlog(&store).await;
        store.set_enabled(id, true, NOW).await;

        let cancelled = BATCH + LEFT;
        let expected = states([("delivered", 1), ("exhausted", 1), ("cancelled", cancelled)]);
        assert_eq!(store.states(id).await, expected);
        assert!(!store.clean_up().await);
        let claimed = store.claim(later(1_000_000)).await;
        assert!(
            claimed
                .iter()
                .all(|claimed| claimed.target.key.webhook_id == other)
        );
        let failed = usize::try_from(cancelled + 1).unwrap();
        assert_eq!(
            store.recoverable(id).await,
            failed,
            "all that were not delivered"
        );
    }
}

#[tokio::test]
async fn a_long_backlog_is_cancelled_in_several_transactions_but_only_of_a_disabled_webhook() {
    for store in TestStore::on_both_databases().await {
        let id = store.add_webhook().await;
        store.insert_long_backlog(id).await;
        assert!(!store.clean_up().await);
        let webhook = store.key(id);
        cancel_whole_backlog(&store.storage, webhook, NOW)
            .await
            .unwrap();
        let all = BATCH + EXCESS;
        assert_eq!(store.states(id).await, states([("pending", all)]));

        // Disabled by its client: one batch, as by its receiver.
        store.set_enabled(id, false, NOW).await;
        let expected = states([("cancelled", BATCH), ("pending", EXCESS)]);
        assert_eq!(store.states(id).await, expected);
        assert!(store.clean_up().await);
        assert_eq!(store.states(id).await, states([("cancelled", all)]));

        store.set_enabled(id, true, NOW).await;
        store.insert_long_backlog(id).await;
        store.disable_without_cancelling(id).await;
        assert!(store.clean_up().await);
        let expected = states([("cancelled", all + BATCH), ("pending", EXCESS)]);
        assert_eq!(store.states(id).await, expected, "one batch at a time");
        assert!(store.clean_up().await);
        assert!(!store.clean_up().await);
        assert_eq!(store.states(id).await, states([("cancelled", 2 * all)]));

        store.set_enabled(id, true, NOW).await;
        store.insert_long_backlog(id).await;
        store.disable_without_cancelling(id).await;
        cancel_whole_backlog(&store.storage, webhook, NOW)
            .await
            .unwrap();
        assert_eq!(store.states(id).await, states([("cancelled", 3 * all)]));
    }
}
