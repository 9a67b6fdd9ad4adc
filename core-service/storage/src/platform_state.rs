//! The state of the platform for its metrics, counted by indexes. One core at a time reads it, and all show it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sea_orm::ConnectionTrait;
use serde::{Deserialize, Serialize};

use super::{
    Connections, Error, Storage, lease_clock, rows,
    task_lists::{LENGTH_CLASS, STATE},
};
use crate::entity::Instant;

/// How long after the end of its window a delivery or a task is current.
const CURRENT: SignedDuration = SignedDuration::from_hours(24);

/// How long a core shows what it or another one has read, before one reads again.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long the last state that was read is shown while reading fails.
const MAX_AGE: Duration = Duration::from_mins(1);

/// How many notifications, and how many events, are counted.
const MAX_COUNT: usize = 10_000;

/// How many webhooks with due notifications are read.
const MAX_WEBHOOKS: usize = 1_000;

/// How much there is to do, as an operator sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformState {
    pub deliveries: Vec<DeliveryCount>,
    pub late_deliveries: i64,
    pub tasks: Vec<TaskCount>,
    pub due_notifications: i64,
    pub leased_notifications: i64,
    /// How long the oldest due notification has been due; zero without any.
    pub oldest_due_age: Duration,
    /// Events that have no number yet.
    pub unsequenced_events: i64,
    /// How old the oldest of them is; zero without any.
    pub oldest_unsequenced_age: Duration,
}

/// The number of current deliveries of one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryCount {
    /// `todo`, `completed` or `cancelled`.
    pub state: String,
    pub count: i64,
}

/// The number of current tasks of one kind and state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCount {
    /// `pickup` or `dropoff`.
    pub kind: String,
    /// `todo`, `doing`, `done`, `failed` or `cancelled`.
    pub state: String,
    pub count: i64,
}

/// The state of the platform, 10 s old at most; older if reading it takes long or fails. `None` if none is stored, or
/// only one that is a minute old.
pub async fn current(storage: &Storage, now: Timestamp) -> Result<Option<PlatformState>, Error> {
    let claimed = storage
        .write(move |transaction| async move { claim(&transaction).await })
        .await?;
    if !claimed {
        return find(storage.reader()).await;
    }
    let state = read(storage.reader(), now).await?;
    let text = serde_json::to_string(&state)
        .map_err(|error| Error::inconsistent("platform_gauges", error))?;
    let stored = storage.write(move |transaction| {
        let text = text.clone();
        async move {
            let (now, value) = lease_clock::expiry_sql(&transaction, Duration::ZERO, "$1");
            let update = format!("UPDATE platform_gauges SET read_at = {now}, state = $2");
            rows::run(&transaction, &update, [value, text.into()]).await
        }
    });
    stored.await?;
    Ok(Some(state))
}

/// Whether this core reads the state, and no other until [`INTERVAL`] has passed. A claim that ends later was made
/// before the clock was set back.
async fn claim(transaction: &impl ConnectionTrait) -> Result<bool, Error> {
    let (now, value) = lease_clock::expiry_sql(transaction, Duration::ZERO, "$1");
    let (end, end_value) = lease_clock::expiry_sql(transaction, INTERVAL, "$2");
    let update = format!(
        "UPDATE platform_gauges SET claimed_until = {end} \
         WHERE claimed_until <= {now} OR claimed_until > {end}"
    );
    Ok(rows::execute(transaction, &update, [value, end_value]).await? > 0)
}

/// What a core has read.
async fn find(reader: &Connections) -> Result<Option<PlatformState>, Error> {
    let (now, value) = lease_clock::expiry_sql(reader, Duration::ZERO, "$1");
    let select = format!(
        "SELECT state FROM platform_gauges WHERE state IS NOT NULL AND read_at + $2 > {now}"
    );
    let max_age = i64::try_from(MAX_AGE.as_micros()).unwrap_or(i64::MAX);
    let found: Option<String> = rows::find_value(reader, &select, [value, max_age.into()]).await?;
    // Another release may have written it.
    Ok(found.and_then(|text| serde_json::from_str(&text).ok()))
}

async fn read(reader: &Connections, now: Timestamp) -> Result<PlatformState, Error> {
    let mut state = PlatformState::default();
    let since = Instant::from(now.saturating_sub(CURRENT).unwrap_or(now));
    let now_value = Instant::from(now);
    for row in rows::query(reader, DELIVERIES, [since.into(), now_value.into()]).await? {
        state.deliveries.push(DeliveryCount {
            state: row.try_get_by_index(0)?,
            count: row.try_get_by_index(1)?,
        });
        state.late_deliveries += row.try_get_by_index::<i64>(2)?;
    }
    for row in rows::query(reader, &tasks(), [since.into()]).await? {
        state.tasks.push(TaskCount {
            kind: row.try_get_by_index(0)?,
            state: row.try_get_by_index(1)?,
            count: row.try_get_by_index(2)?,
        });
    }
    let age = |since: Option<i64>| {
        let since = since.and_then(|since| Timestamp::from_microsecond(since).ok());
        // The clocks of cores may differ: never negative.
        let age = since.map(|since| Duration::try_from(now.duration_since(since)));
        age.and_then(Result::ok).unwrap_or_default()
    };
    for row in rows::query(reader, &notifications(), [now_value.into()]).await? {
        state.due_notifications = row.try_get_by_index(0)?;
        state.leased_notifications = row.try_get_by_index(1)?;
        state.oldest_due_age = age(row.try_get_by_index(2)?);
    }
    for row in rows::query(reader, &events(), []).await? {
        state.unsequenced_events = row.try_get_by_index(0)?;
        state.oldest_unsequenced_age = age(row.try_get_by_index(1)?);
    }
    Ok(state)
}

// The conditions of these statements are those of indexes.

/// The parameters are the earliest end of a current window, and now.
const DELIVERIES: &str = "\
    SELECT CASE WHEN cancelled_at IS NOT NULL THEN 'cancelled' \
            WHEN completed_at IS NOT NULL THEN 'completed' ELSE 'todo' END, \
        COUNT(*), \
        COUNT(CASE WHEN dropoff_before < $2 AND cancelled_at IS NULL AND completed_at IS NULL THEN 1 END) \
    FROM deliveries WHERE erased_at IS NULL AND dropoff_before >= $1 GROUP BY 1";

fn tasks() -> String {
    format!(
        "SELECT kind, {STATE}, COUNT(*) FROM tasks \
         WHERE {STATE} IN ('todo', 'doing', 'done', 'failed', 'cancelled') \
             AND {LENGTH_CLASS} IN (0, 1, 2, 3) AND before >= $1 \
         GROUP BY 1, 2"
    )
}

/// A webhook's `next_due_at` is set while it has pending notifications, and is in the past if one
/// of them is due.
fn notifications() -> String {
    let due_webhooks = format!(
        "SELECT store_id, id FROM webhooks \
         WHERE next_due_at IS NOT NULL AND next_due_at <= $1 \
         ORDER BY next_due_at LIMIT {MAX_WEBHOOKS}"
    );
    format!(
        "SELECT \
             (SELECT COUNT(*) FROM ( \
                 SELECT 1 AS one FROM ({due_webhooks}) AS webhook \
                 JOIN notifications ON notifications.store_id = webhook.store_id \
                     AND notifications.webhook_id = webhook.id \
                 WHERE notifications.state = 'pending' AND notifications.due_at <= $1 \
                 LIMIT {MAX_COUNT} \
             ) AS due), \
             (SELECT COUNT(*) FROM ( \
                 SELECT 1 AS one FROM notifications WHERE state = 'leased' LIMIT {MAX_COUNT} \
             ) AS leased), \
             (SELECT MIN(oldest.due_at) FROM ( \
                 SELECT (SELECT MIN(notifications.due_at) FROM notifications \
                     WHERE notifications.store_id = webhook.store_id \
                         AND notifications.webhook_id = webhook.id \
                         AND notifications.state = 'pending' AND notifications.due_at <= $1 \
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{fixture, notifications, stores};

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
            state: state.to_owned(),
            count,
        };
        let hours = |hours| Duration::from_hours(hours);
        let expected = PlatformState {
            deliveries: vec![DeliveryCount {
                state: "todo".to_owned(),
                count: 2,
            }],
            tasks: vec![
                tasks("dropoff", "todo", 2),
                tasks("pickup", "failed", 1),
                tasks("pickup", "todo", 1),
            ],
            late_deliveries: 0,
            due_notifications: 2,
            leased_notifications: 3,
            oldest_due_age: Duration::from_mins(119),
            unsequenced_events: 5,
            oldest_unsequenced_age: hours(2),
        };

        // The deliveries are late after their dropoff windows of two hours.
        let end = NOW + SignedDuration::from_hours(2);
        for (passed, late_deliveries) in [(0, 0), (1, 2)] {
            let passed = Duration::from_micros(passed);
            let mut state = read(storage.reader(), end + passed).await.unwrap();

            state
                .tasks
                .sort_by_key(|count| (count.kind.clone(), count.state.clone()));
            let expected = PlatformState {
                late_deliveries,
                oldest_due_age: expected.oldest_due_age + passed,
                oldest_unsequenced_age: expected.oldest_unsequenced_age + passed,
                ..expected.clone()
            };
            assert_eq!(state, expected);
        }
        // Of a core whose clock is behind.
        let early = NOW - SignedDuration::from_secs(1);
        let early = read(storage.reader(), early).await.unwrap();
        assert_eq!(early.oldest_unsequenced_age, Duration::ZERO);
    }

    #[tokio::test]
    async fn tasks_late_deliveries_notifications_and_events_are_counted() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            assert_state(storage).await;
        }
    }

    #[tokio::test]
    async fn one_core_reads_the_state_and_the_others_show_it_for_a_minute_at_most() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let current = async || current(&storage, NOW).await.unwrap();
            let first = current().await;
            assert_eq!(first, Some(PlatformState::default()));
            let new = fixture::new_delivery(fixture::delivery(fixture::store("A").id, NOW));
            assert!(storage.insert_delivery(new).await.unwrap());

            assert_eq!(current().await, first);

            fixture::execute(&storage, "UPDATE platform_gauges SET read_at = 0").await;
            assert_eq!(current().await, None);
            fixture::execute(&storage, "UPDATE platform_gauges SET claimed_until = 0").await;
            let counted = current().await.unwrap();
            assert_eq!(counted.deliveries[0].count, 1);
        }
    }
}
