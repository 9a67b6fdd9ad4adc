//! Backlogs longer than one transaction drops, in both databases: what is left of them is never
//! sent, and dropped in the end.

use std::collections::BTreeMap;

use super::{super::leftover::DROPPED_AT_ONCE, deadlocks::gone, *};
use crate::{pages::Place, webhook_notifications::failed_behind};

/// So much more than one transaction drops.
const MORE: u64 = 3;

/// What is left of two long backlogs after that, and of one that was to be tried again.
const LEFT: u64 = DROPPED_AT_ONCE + 2 * MORE + 1;

impl Shop {
    async fn in_both() -> Vec<Self> {
        let mut both = vec![Self::new().await];
        both.extend(Self::on_postgres().await);
        both
    }

    /// Owes a webhook a long backlog, due now.
    async fn owe_long_backlog(&self, webhook_id: WebhookId) {
        let store_id = self.store_id;
        self.write(move |transaction| {
            Box::pin(async move {
                let rows: Vec<_> = (0..DROPPED_AT_ONCE + MORE)
                    .map(|_| notification::ActiveModel {
                        store_id: Set(store_id.0),
                        id: Set(NotificationId::new().0),
                        event_id: Set(Uuid::now_v7()),
                        webhook_id: Set(webhook_id.0),
                        event: Set("delivery.completed".to_owned()),
                        delivery_id: Set(DeliveryId::new().0),
                        state: Set(PENDING.to_owned()),
                        attempts: Set(0),
                        restarted_after: Set(0),
                        due_at: Set(NOW.into()),
                        lease_token: Set(None),
                        leased_until: Set(None),
                        created_at: Set(NOW.into()),
                        finished_at: Set(None),
                    })
                    .collect();
                for rows in rows.chunks(1000) {
                    notification::Entity::insert_many(rows.to_vec())
                        .exec_without_returning(transaction)
                        .await
                        .unwrap();
                }
                let due = BTreeMap::from([((store_id, webhook_id), NOW)]);
                assert_eq!(wake(transaction, &due).await?.len(), 1);
                Ok(())
            })
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
            let ended = [DELIVERED, GIVEN_UP, DROPPED].contains(&row.state.as_str());
            assert_eq!(row.finished_at.is_some(), ended, "{}", row.state);
            *states.entry(row.state).or_default() += 1;
            states
        })
    }

    /// Drops some of what is left of any webhook; whether there was something.
    async fn sweep(&self) -> bool {
        drop_some_left(&self.storage, NOW).await.unwrap()
    }

    /// How many a recovery finds.
    async fn recoverable(&self, webhook_id: WebhookId) -> usize {
        let owner = (self.store_id, webhook_id);
        let from = Place {
            created_at: NOW,
            id: Uuid::nil(),
        };
        failed_behind(self.storage.reader(), owner, from, 1_000_000)
            .await
            .unwrap()
            .len()
    }
}

fn states<const N: usize>(states: [(&str, u64); N]) -> BTreeMap<String, u64> {
    let state = |(state, count): (&str, _)| (state.to_owned(), count);
    states.into_iter().map(state).collect()
}

/// Two webhooks, of which one has two long backlogs: two of each are on their way, and the receiver
/// of the one says that it is gone.
async fn gone_with_a_long_backlog(shop: &Shop) -> [WebhookId; 2] {
    let [id, other] = [shop.add_webhook().await, shop.add_webhook().await];
    shop.has_answered(NOW).await;
    shop.complete(2, NOW).await;
    let held = shop.claim(NOW).await;
    let (of_it, of_other): (Vec<_>, Vec<_>) = held
        .iter()
        .partition(|(_, claimed)| claimed.target.webhook_id == id);
    shop.owe_long_backlog(id).await;
    shop.owe_long_backlog(id).await;

    let outcomes = [
        (of_it[0], gone()),
        (of_it[1], refused()),
        (of_other[0], Outcome::Delivered),
        (of_other[1], refused()),
    ];
    let recorded = shop.record(Duration::ZERO, &outcomes, NOW).await;
    assert_eq!(recorded.gone, [(shop.store_id, id)]);
    assert_eq!(recorded.attempts.len(), 4, "those of others too");
    assert!(shop.row(id).await.disabled_at.is_some());
    let of_other = states([("delivered", 2), ("pending", 1)]);
    assert_eq!(shop.states(other).await, of_other);
    [id, other]
}

#[tokio::test]
async fn a_receiver_that_is_gone_holds_up_no_outcomes_with_its_backlog() {
    for shop in Shop::in_both().await {
        let [id, other] = gone_with_a_long_backlog(&shop).await;
        let mut expected = states([
            ("delivered", 1),
            ("given_up", 1),
            ("dropped", DROPPED_AT_ONCE),
            ("pending", LEFT),
        ]);
        assert_eq!(shop.states(id).await, expected);

        // Nobody takes any of the rest.
        let long_after = later(1_000_000);
        let claimed = shop.claim(long_after).await;
        let whose: Vec<_> = claimed
            .iter()
            .map(|(_, claimed)| claimed.target.webhook_id)
            .collect();
        assert_eq!(whose, [other]);
        let reader = shop.storage.reader();
        assert!(!is_any_due(reader, long_after).await.unwrap());
        assert!(!is_any_turn(reader, &room(10), long_after).await.unwrap());
        assert_eq!(shop.states(id).await, expected);

        assert!(shop.sweep().await);
        assert!(shop.sweep().await);
        assert!(!shop.sweep().await, "nothing is left");
        expected.remove("pending");
        expected.insert("dropped".to_owned(), DROPPED_AT_ONCE + LEFT);
        assert_eq!(shop.states(id).await, expected);
    }
}

#[tokio::test]
async fn what_is_left_of_a_backlog_is_not_sent_when_its_webhook_is_enabled() {
    for shop in Shop::in_both().await {
        let [id, other] = gone_with_a_long_backlog(&shop).await;
        shop.set_enabled(id, true, NOW).await;

        let dropped = DROPPED_AT_ONCE + LEFT;
        let expected = states([("delivered", 1), ("given_up", 1), ("dropped", dropped)]);
        assert_eq!(shop.states(id).await, expected);
        assert!(!shop.sweep().await);
        let claimed = shop.claim(later(1_000_000)).await;
        assert!(
            claimed
                .iter()
                .all(|(_, claimed)| claimed.target.webhook_id == other)
        );
        let failed = usize::try_from(dropped + 1).unwrap();
        assert_eq!(shop.recoverable(id).await, failed, "all that was not told");
    }
}

#[tokio::test]
async fn a_long_backlog_is_dropped_in_several_transactions_and_never_that_of_an_enabled_webhook() {
    for shop in Shop::in_both().await {
        let id = shop.add_webhook().await;
        shop.owe_long_backlog(id).await;
        assert!(!shop.sweep().await);
        let of_it = (shop.store_id, id);
        drop_left_of(&shop.storage, of_it, NOW).await.unwrap();
        let all = DROPPED_AT_ONCE + MORE;
        assert_eq!(shop.states(id).await, states([("pending", all)]));

        // By its client: no more at once than by its receiver.
        shop.set_enabled(id, false, NOW).await;
        let expected = states([("dropped", DROPPED_AT_ONCE), ("pending", MORE)]);
        assert_eq!(shop.states(id).await, expected);
        assert!(shop.sweep().await);
        assert_eq!(shop.states(id).await, states([("dropped", all)]));

        shop.set_enabled(id, true, NOW).await;
        shop.owe_long_backlog(id).await;
        shop.disable_alone(id).await;
        assert!(shop.sweep().await);
        let expected = states([("dropped", all + DROPPED_AT_ONCE), ("pending", MORE)]);
        assert_eq!(shop.states(id).await, expected, "a little at a time");
        assert!(shop.sweep().await);
        assert!(!shop.sweep().await);
        assert_eq!(shop.states(id).await, states([("dropped", 2 * all)]));

        shop.set_enabled(id, true, NOW).await;
        shop.owe_long_backlog(id).await;
        shop.disable_alone(id).await;
        drop_left_of(&shop.storage, of_it, NOW).await.unwrap();
        assert_eq!(shop.states(id).await, states([("dropped", 3 * all)]));
    }
}
