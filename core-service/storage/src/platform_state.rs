//! The state of the platform for its metrics: three bounded queries that use indexes.

use jiff::{SignedDuration, Timestamp};

use super::{Connections, Error, rows};

/// How long after the end of its dropoff window a delivery is current.
const CURRENT: SignedDuration = SignedDuration::from_hours(24);

/// How many current deliveries are counted.
const MAX_DELIVERIES: usize = 20_000;

/// How many notifications, and how many events, are counted.
const MAX_COUNT: usize = 10_000;

/// How many webhooks with due notifications are read.
const MAX_WEBHOOKS: usize = 1_000;

/// How much there is to do, as an operator sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformState {
    pub tasks: Vec<TaskCount>,
    pub late_deliveries: i64,
    pub due_notifications: i64,
    pub leased_notifications: i64,
    /// When the oldest due notification became due.
    pub oldest_due_at: Option<Timestamp>,
    /// Events that have no number yet.
    pub unsequenced_events: i64,
    /// When the oldest of them was written.
    pub oldest_unsequenced_at: Option<Timestamp>,
}

/// The number of tasks of one kind and state, in the current deliveries of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCount {
    /// `pickup` or `dropoff`.
    pub kind: String,
    /// `todo`, `completed` or `cancelled`.
    pub delivery_state: String,
    /// `todo`, `doing`, `done`, `failed` or `cancelled`.
    pub task_state: String,
    pub count: i64,
}

pub async fn read(reader: &Connections, now: Timestamp) -> Result<PlatformState, Error> {
    let mut state = PlatformState::default();
    for row in rows::query(reader, &deliveries(now), []).await? {
        state.tasks.push(TaskCount {
            kind: row.try_get_by_index(0)?,
            delivery_state: row.try_get_by_index(1)?,
            task_state: row.try_get_by_index(2)?,
            count: row.try_get_by_index(3)?,
        });
        state.late_deliveries += row.try_get_by_index::<i64>(4)?;
    }
    for row in rows::query(reader, &notifications(now), []).await? {
        state.due_notifications = row.try_get_by_index(0)?;
        state.leased_notifications = row.try_get_by_index(1)?;
        state.oldest_due_at = instant(row.try_get_by_index(2)?);
    }
    for row in rows::query(reader, &events(), []).await? {
        state.unsequenced_events = row.try_get_by_index(0)?;
        state.oldest_unsequenced_at = instant(row.try_get_by_index(1)?);
    }
    Ok(state)
}

// In these statements, only integers are interpolated, no external text. The conditions are those of
// partial indexes.

fn deliveries(now: Timestamp) -> String {
    let from = now.saturating_sub(CURRENT).unwrap_or(now).as_microsecond();
    let now = now.as_microsecond();
    format!(
        "SELECT tasks.kind, \
             CASE WHEN current.cancelled_at IS NOT NULL THEN 'cancelled' \
                 WHEN current.completed_at IS NOT NULL THEN 'completed' ELSE 'todo' END AS delivery, \
             CASE WHEN tasks.cancelled_at IS NOT NULL THEN 'cancelled' \
                 WHEN tasks.completed_at IS NOT NULL THEN 'done' \
                 ELSE COALESCE(tasks.state, 'todo') END AS task, \
             COUNT(*), \
             COUNT(CASE WHEN tasks.kind = 'dropoff' AND current.dropoff_before < {now} \
                 AND current.cancelled_at IS NULL AND current.completed_at IS NULL THEN 1 END) \
         FROM ( \
             SELECT store_id, id, cancelled_at, completed_at, dropoff_before FROM deliveries \
             WHERE erased_at IS NULL AND dropoff_before >= {from} \
             ORDER BY dropoff_before LIMIT {MAX_DELIVERIES} \
         ) AS current \
         JOIN tasks ON tasks.store_id = current.store_id AND tasks.delivery_id = current.id \
         GROUP BY 1, 2, 3"
    )
}

/// A webhook's `next_due_at` is set while it has pending notifications, and is in the past if one
/// of them is due.
fn notifications(now: Timestamp) -> String {
    let now = now.as_microsecond();
    let due_webhooks = format!(
        "SELECT store_id, id FROM webhooks \
         WHERE next_due_at IS NOT NULL AND next_due_at <= {now} \
         ORDER BY next_due_at LIMIT {MAX_WEBHOOKS}"
    );
    format!(
        "SELECT \
             (SELECT COUNT(*) FROM ( \
                 SELECT 1 AS one FROM ({due_webhooks}) AS webhook \
                 JOIN notifications ON notifications.store_id = webhook.store_id \
                     AND notifications.webhook_id = webhook.id \
                 WHERE notifications.state = 'pending' AND notifications.due_at <= {now} \
                 LIMIT {MAX_COUNT} \
             ) AS due), \
             (SELECT COUNT(*) FROM ( \
                 SELECT 1 AS one FROM notifications WHERE state = 'leased' LIMIT {MAX_COUNT} \
             ) AS leased), \
             (SELECT MIN(oldest.due_at) FROM ( \
                 SELECT (SELECT MIN(notifications.due_at) FROM notifications \
                     WHERE notifications.store_id = webhook.store_id \
                         AND notifications.webhook_id = webhook.id \
                         AND notifications.state = 'pending' AND notifications.due_at <= {now} \
                 ) AS due_at FROM ({due_webhooks}) AS webhook \
             ) AS oldest)"
    )
}

fn events() -> String {
    format!(
        "SELECT COUNT(*), MIN(created_at) FROM ( \
             SELECT created_at FROM events WHERE number IS NULL \
             ORDER BY created_at, id LIMIT {MAX_COUNT} \
         ) AS unsequenced"
    )
}

fn instant(microseconds: Option<i64>) -> Option<Timestamp> {
    Timestamp::from_microsecond(microseconds?).ok()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::prelude::ConnectionTrait as _;
    use crate::{Storage, fixture, notifications, stores};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const LEASE: Duration = Duration::from_hours(1);

    /// Enqueues the notification of a further event of the webhook's store.
    async fn enqueue(storage: &Storage, webhook: &domain::webhook::Webhook, now: Timestamp) {
        let (store_id, event) = (webhook.store_id, webhook.event.parse().unwrap());
        let enqueued = storage.write(move |transaction| async move {
            let change = fixture::delivery_events(store_id, &[event]);
            let new = notifications::record_events(&transaction, change, now).await?;
            notifications::insert(&transaction, &new, LEASE, now).await
        });
        assert!(enqueued.await.unwrap(), "it is pending");
    }

    async fn assert_state(storage: Arc<Storage>) {
        let store = fixture::store("A");
        stores::insert(storage.reader(), &store).await.unwrap();
        for _ in 0..2 {
            let delivery = fixture::delivery(store.id, NOW);
            let new = fixture::new_delivery(delivery);
            assert!(storage.insert_delivery(new).await.unwrap());
        }
        let webhook = fixture::webhook(NOW);
        fixture::leased_notifications(&storage, &webhook, 3, LEASE).await;
        let minute = SignedDuration::from_mins(1);
        for due_at in [NOW + minute, NOW + minute * 2] {
            enqueue(&storage, &webhook, due_at).await;
        }
        let fail = "UPDATE tasks SET state = 'failed' WHERE kind = 'pickup' AND CAST(id AS text)
            = (SELECT MIN(CAST(id AS text)) FROM tasks WHERE kind = 'pickup')";
        storage.reader().execute_unprepared(fail).await.unwrap();
        let tasks = |kind: &str, state: &str, count| TaskCount {
            kind: kind.to_owned(),
            delivery_state: "todo".to_owned(),
            task_state: state.to_owned(),
            count,
        };
        let expected = PlatformState {
            tasks: vec![
                tasks("dropoff", "todo", 2),
                tasks("pickup", "failed", 1),
                tasks("pickup", "todo", 1),
            ],
            late_deliveries: 0,
            due_notifications: 2,
            leased_notifications: 3,
            oldest_due_at: Some(NOW + minute),
            unsequenced_events: 5,
            oldest_unsequenced_at: Some(NOW),
        };

        // The deliveries are late after their dropoff windows of two hours.
        let end = NOW + SignedDuration::from_hours(2);
        for (now, late_deliveries) in [(end, 0), (end + SignedDuration::from_micros(1), 2)] {
            let mut state = read(storage.reader(), now).await.unwrap();

            let key = |count: &TaskCount| (count.kind.clone(), count.task_state.clone());
            state.tasks.sort_by_key(key);
            let expected = PlatformState {
                late_deliveries,
                ..expected.clone()
            };
            assert_eq!(state, expected);
        }
    }

    #[tokio::test]
    async fn tasks_late_deliveries_notifications_and_events_are_counted() {
        let (_directory, storage) = fixture::sqlite().await;
        assert_state(storage).await;
        if let Some(storage) = fixture::postgres().await {
            assert_state(storage).await;
        }
    }
}
