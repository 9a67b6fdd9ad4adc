//! Verifies a `PostgreSQL` database while cores use it: what each row promises about others, in batches by
//! key, each in a transaction that only reads. Constraints and indexes are its own matter.

use sea_orm::ConnectionTrait as _;

use super::{Error, Session, connect::Target, rows, schema};

/// The rows of a batch.
const BATCH: u64 = 2000;

/// The checks: a table, the first key, and the statement that returns the rows of a batch after a key, each with
/// its store, its key and what is wrong, if anything.
const CHECKS: [Check; 4] = [
    Check {
        table: "deliveries",
        first: NO_ID,
        select: "SELECT CAST(d.store_id AS text), CAST(d.id AS text), CASE
                WHEN NOT EXISTS (SELECT 1 FROM stores WHERE stores.id = d.store_id)
                    THEN 'its store does not exist'
                WHEN t.pickups <> 1 OR t.dropoffs <> 1 THEN 'it does not have one pickup and one dropoff'
                WHEN (d.completed_at IS NULL) = (t.completed = 2)
                    THEN 'it is completed otherwise than its tasks'
                WHEN (d.cancelled_at IS NULL) = (t.cancelled > 0)
                    THEN 'it is cancelled otherwise than its tasks'
                WHEN d.dropoff_before <> t.dropoff_before THEN 'it ends otherwise than its dropoff'
            END
            FROM (SELECT * FROM deliveries WHERE (store_id, id) > (CAST($1 AS uuid), CAST($2 AS uuid))
                ORDER BY store_id, id LIMIT $3) AS d
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE kind = 'pickup') AS pickups,
                    count(*) FILTER (WHERE kind = 'dropoff') AS dropoffs,
                    count(completed_at) AS completed, count(cancelled_at) AS cancelled,
                    max(before) FILTER (WHERE kind = 'dropoff') AS dropoff_before
                FROM tasks WHERE tasks.store_id = d.store_id AND tasks.delivery_id = d.id
            ) AS t
            ORDER BY d.store_id, d.id",
    },
    Check {
        table: "tasks",
        first: NO_ID,
        select: "SELECT CAST(t.store_id AS text), CAST(t.id AS text),
                CASE WHEN d.id IS NULL THEN 'its delivery does not exist' END
            FROM (SELECT store_id, id, delivery_id FROM tasks
                WHERE (store_id, id) > (CAST($1 AS uuid), CAST($2 AS uuid))
                ORDER BY store_id, id LIMIT $3) AS t
            LEFT JOIN deliveries AS d ON d.store_id = t.store_id AND d.id = t.delivery_id
            ORDER BY t.store_id, t.id",
    },
    Check {
        table: "events",
        first: "0",
        select: "SELECT CAST(e.store_id AS text), CAST(e.number AS text), CASE
                WHEN c.store_id IS NULL THEN 'its store has no counter'
                WHEN e.number > c.last_number THEN 'its number is above the counter of its store'
                -- Retention has removed those up to a number.
                WHEN e.number > e.previous + 1 AND e.number > c.retained_after + 1
                    THEN 'the event before it is missing'
            END
            FROM (SELECT store_id, number, COALESCE(
                    lag(number) OVER (PARTITION BY store_id ORDER BY number),
                    CASE WHEN store_id = CAST($1 AS uuid) THEN CAST($2 AS bigint) ELSE 0 END
                ) AS previous
                FROM (SELECT store_id, number FROM events
                    WHERE number IS NOT NULL AND (store_id, number) > (CAST($1 AS uuid), CAST($2 AS bigint))
                    ORDER BY store_id, number LIMIT $3) AS page) AS e
            LEFT JOIN event_counters AS c ON c.store_id = e.store_id
            ORDER BY e.store_id, e.number",
    },
    Check {
        table: "notifications",
        first: NO_ID,
        select: "SELECT CAST(n.store_id AS text), CAST(n.id AS text), CASE
                WHEN n.state NOT IN ('pending', 'leased') THEN NULL
                -- A leased one may have been inserted while its webhook was deleted.
                WHEN n.state = 'pending' AND w.id IS NULL THEN 'it is to be sent, and its webhook does not exist'
                WHEN n.state = 'pending' AND w.disabled_at IS NULL AND w.next_due_at IS NULL
                    THEN 'it is to be sent, and its webhook is not in the queue'
            END
            FROM (SELECT store_id, id, webhook_id, state FROM notifications
                WHERE (store_id, id) > (CAST($1 AS uuid), CAST($2 AS uuid))
                ORDER BY store_id, id LIMIT $3) AS n
            LEFT JOIN webhooks AS w ON w.store_id = n.store_id AND w.id = n.webhook_id
            ORDER BY n.store_id, n.id",
    },
];

const NO_ID: &str = "00000000-0000-0000-0000-000000000000";

struct Check {
    table: &'static str,
    first: &'static str,
    select: &'static str,
}

/// What a batch has found.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    pub table: &'static str,
    pub rows: u64,
    /// The rows of the table, as the database estimates.
    pub estimate: u64,
    pub problems: Vec<Problem>,
}

/// A row that contradicts others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub table: &'static str,
    pub store: String,
    /// The id, or the number of an event.
    pub key: String,
    pub reason: String,
}

/// Verifies a database, and reports each batch. Fails if it cannot be read, or has no platform.
pub async fn verify(url: &str, report: &mut (dyn FnMut(Batch) + Send)) -> Result<(), Error> {
    let session = Target::of(url)?.session().await;
    let session = session.map_err(|error| error.explained(url))?;
    schema::require(&session).await?;
    for check in &CHECKS {
        let size = "SELECT CAST(GREATEST(reltuples, 0) AS bigint) FROM pg_class WHERE oid = to_regclass($1)";
        session.execute_unprepared("BEGIN READ ONLY").await?;
        let size: Option<i64> = rows::find_value(&session, size, [check.table.into()]).await?;
        session.roll_back().await?;
        let estimate = u64::try_from(size.unwrap_or_default()).unwrap_or_default();
        let mut last = [NO_ID, check.first].map(str::to_owned);
        loop {
            let (batch, next) = check.run(&session, last, estimate).await?;
            let is_last = batch.rows < BATCH;
            report(batch);
            match next {
                Some(next) if !is_last => last = next,
                _ => break,
            }
        }
    }
    session.close().await?;
    Ok(())
}

impl Check {
    /// The batch after a key, and its last key.
    async fn run(
        &self,
        session: &Session,
        after: [String; 2],
        estimate: u64,
    ) -> Result<(Batch, Option<[String; 2]>), Error> {
        let [store, key] = after;
        let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
        session.execute_unprepared("BEGIN READ ONLY").await?;
        let parameters = [store.into(), key.into(), limit.into()];
        let found = rows::query(session, self.select, parameters).await;
        session.roll_back().await?;
        let mut batch = Batch {
            table: self.table,
            rows: 0,
            estimate,
            problems: Vec::new(),
        };
        let mut last = None;
        for row in found? {
            let (store, key): (String, String) =
                (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
            let reason: Option<String> = row.try_get_by_index(2)?;
            batch.rows += 1;
            batch.problems.extend(reason.map(|reason| Problem {
                table: self.table,
                store: store.clone(),
                key: key.clone(),
                reason,
            }));
            last = Some([store, key]);
        }
        Ok((batch, last))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{fixture, stores};

    #[tokio::test]
    async fn each_row_that_contradicts_others_is_found_and_nothing_else() {
        let Some(url) = fixture::postgres_url() else {
            return;
        };
        let storage = crate::Storage::connect(&url, 2).await.unwrap();
        let store = fixture::store("A");
        stores::insert(storage.reader(), &store).await.unwrap();
        let delivery = fixture::delivery(store.id, Timestamp::UNIX_EPOCH);
        let new = fixture::new_delivery(delivery.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
        let found = async || {
            let (mut rows, mut problems) = (Vec::new(), Vec::new());
            let mut report = |batch: Batch| {
                rows.push((batch.table, batch.rows));
                problems.extend(batch.problems);
            };
            verify(&url, &mut report).await.unwrap();
            let reasons = problems.into_iter();
            let reasons = reasons.map(|found| (found.table, found.key, found.reason));
            (rows, reasons.collect::<Vec<_>>())
        };
        let (rows, problems) = found().await;
        assert_eq!(
            rows,
            [
                ("deliveries", 1),
                ("tasks", 2),
                ("events", 0),
                ("notifications", 0)
            ]
        );
        assert!(problems.is_empty(), "{problems:?}");

        let numbered = format!(
            "INSERT INTO events (store_id, id, name, object_collection, object_id, created_at, number, position)
                SELECT '{id}', gen_random_uuid(), 'delivery.created', 'deliveries', gen_random_uuid(), 0, n, n
                FROM generate_series(3, 2500) AS n;
             INSERT INTO event_counters VALUES ('{id}', 2500, 2)",
            id = store.id
        );
        storage
            .reader()
            .execute_unprepared(&numbered)
            .await
            .unwrap();
        // Retention has removed two events.
        let problems = found().await.1;
        assert!(problems.is_empty(), "{problems:?}");

        let (id, pickup) = (delivery.id.to_string(), delivery.pickup.id);
        let id = id.as_str();
        let notification = "00000000-0000-0000-0000-000000000007";
        for (table, key, change, expected) in [
            (
                "deliveries",
                id,
                format!("UPDATE tasks SET cancelled_at = 1 WHERE id = '{pickup}'"),
                "it is cancelled otherwise than its tasks",
            ),
            (
                "deliveries",
                id,
                "UPDATE deliveries SET completed_at = 1".to_owned(),
                "it is completed otherwise than its tasks",
            ),
            (
                "deliveries",
                id,
                format!("DELETE FROM tasks WHERE id = '{pickup}'"),
                "it does not have one pickup and one dropoff",
            ),
            (
                "events",
                "2200",
                "DELETE FROM events WHERE number = 2199".to_owned(),
                "the event before it is missing",
            ),
            (
                "notifications",
                notification,
                format!(
                    "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id, state, attempts, due_at, created_at)
                     VALUES ('{}', '{notification}', '{id}', '{id}', 'delivery.created', '{id}', 'pending', 0, 0, 0)",
                    store.id
                ),
                "it is to be sent, and its webhook does not exist",
            ),
        ] {
            storage.reader().execute_unprepared(&change).await.unwrap();
            let problems = found().await.1;
            let problem = (table, key.to_owned(), expected.to_owned());
            assert!(problems.contains(&problem), "{expected}: {problems:?}");
        }
        let counted = found().await.1.len();
        assert_eq!(counted, 3, "one for each table that is not as it should be");
    }
}
