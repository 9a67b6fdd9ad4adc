//! The log of what watchers of tasks get: changed deliveries and lists of couriers. A transaction queues its changes;
//! once it is committed, they are moved to the log with positions 1, 2, 3 and so on, in one transaction at a time.

use domain::{
    courier::ListKey,
    event::LogBounds,
    id::{DeliveryId, StoreId},
};
use sea_orm::{InsertMany, Value};

use super::{
    delivery_rows::list_key,
    entity::{
        instant::Instant,
        queued_task_change::{ActiveModel, Entity},
        task_change,
    },
    events,
};
use crate::prelude::*;

/// What watchers get the changes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// Its tasks.
    Delivery(StoreId, DeliveryId),
    /// Its members and their order.
    List(ListKey),
}

/// A change in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedChange {
    pub position: i64,
    pub change: Watched,
}

/// The statement that queues changes. None may be none.
pub(super) fn insertion(changes: impl IntoIterator<Item = Watched>) -> InsertMany<ActiveModel> {
    Entity::insert_many(changes.into_iter().map(row))
}

fn row(change: Watched) -> ActiveModel {
    let (delivery, list) = match change {
        Watched::Delivery(store_id, id) => (Some((store_id.0, id.0)), None),
        Watched::List(list) => (None, Some(list)),
    };
    ActiveModel {
        id: NotSet,
        store_id: Set(delivery.map(|(store_id, _)| store_id)),
        delivery_id: Set(delivery.map(|(_, id)| id)),
        courier_id: Set(list.map(|list| list.courier_id.0)),
        list_day: Set(list.map(|list| list.day.to_string())),
    }
}

/// Whether any change waits for its position.
pub async fn is_any_queued(connection: &impl ConnectionTrait) -> Result<bool, Error> {
    rows::exist(connection, Entity::find()).await
}

/// Moves committed changes to the log, in the order in which they were queued. Returns how many; `None` if another
/// core is moving some, which may not see the newest.
pub async fn move_to_log(
    transaction: &impl ConnectionTrait,
    limit: usize,
    now: Timestamp,
) -> Result<Option<u64>, Error> {
    let is_postgres = transaction.get_database_backend() == DbBackend::Postgres;
    let lock = if is_postgres {
        "FOR UPDATE SKIP LOCKED"
    } else {
        ""
    };
    let select = format!("SELECT last_position FROM task_change_logs {lock}");
    let found: Option<i64> = rows::find_value(transaction, &select, []).await?;
    let Some(last_position) = found else {
        return Ok(None);
    };
    let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
    let now = Instant::from(now).into();
    let values = [last_position.into(), now, limit.clone()];
    let moved = if is_postgres {
        rows::execute(transaction, MOVE, values).await?
    } else {
        let copied = rows::execute(transaction, COPY, values).await?;
        rows::run(transaction, DELETE_COPIED, [limit]).await?;
        copied
    };
    if moved > 0 {
        let update = "UPDATE task_change_logs SET last_position = last_position + $1";
        let moved = i64::try_from(moved).unwrap_or(i64::MAX);
        rows::run(transaction, update, [moved.into()]).await?;
    }
    Ok(Some(moved))
}

/// The parameters are the last position, the time and the limit. Not `id IN (SELECT …)`: PostgreSQL may have planned
/// for a queue of one row, and would read all of a long one for each.
const MOVE: &str = "\
    WITH moved AS (
        DELETE FROM task_change_queue WHERE id <= (
            SELECT MAX(id) FROM (SELECT id FROM task_change_queue ORDER BY id LIMIT $3) AS oldest
        ) RETURNING *
    )
    INSERT INTO task_changes (position, moved_at, store_id, delivery_id, courier_id, list_day)
    SELECT $1 + ROW_NUMBER() OVER (ORDER BY id), $2, store_id, delivery_id, courier_id, list_day
    FROM moved";

/// The same over `SQLite`, where nothing changes between two statements of a transaction.
const COPY: &str = "\
    INSERT INTO task_changes (position, moved_at, store_id, delivery_id, courier_id, list_day)
    SELECT $1 + ROW_NUMBER() OVER (ORDER BY id), $2, store_id, delivery_id, courier_id, list_day
    FROM (SELECT * FROM task_change_queue ORDER BY id LIMIT $3)";
const DELETE_COPIED: &str = "\
    DELETE FROM task_change_queue WHERE id <= (
        SELECT MAX(id) FROM (SELECT id FROM task_change_queue ORDER BY id LIMIT $1)
    )";

/// The changes after a position, in order.
pub async fn list(
    connection: &impl ConnectionTrait,
    after: i64,
    limit: u64,
) -> Result<Vec<LoggedChange>, Error> {
    let query = task_change::Entity::find()
        .filter(task_change::Column::Position.gt(after))
        .order_by_asc(task_change::Column::Position);
    rows::all(connection, query.limit(limit)).await
}

/// The bounds of the log.
pub async fn bounds(connection: &impl ConnectionTrait) -> Result<LogBounds, Error> {
    let select = "SELECT retained_after, last_position FROM task_change_logs";
    events::read_bounds(connection, select, &[]).await
}

/// Removes the oldest changes that were moved before an instant. Returns how many.
pub async fn remove_oldest(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let oldest: Vec<(i64, Instant)> = task_change::Entity::find()
        .select_only()
        .column(task_change::Column::Position)
        .column(task_change::Column::MovedAt)
        .order_by_asc(task_change::Column::Position)
        .limit(limit)
        .into_tuple()
        .all(transaction)
        .await?;
    let is_older = |(_, moved_at): &(_, Instant)| *moved_at < Instant::from(before);
    let Some((last, _)) = oldest.into_iter().take_while(is_older).last() else {
        return Ok(0);
    };
    let update = "UPDATE task_change_logs SET retained_after = $1 WHERE retained_after < $1";
    rows::run(transaction, update, [last.into()]).await?;
    let delete = "DELETE FROM task_changes WHERE position <= $1";
    rows::execute(transaction, delete, [last.into()]).await
}

impl TryFrom<task_change::Model> for LoggedChange {
    type Error = Error;

    fn try_from(row: task_change::Model) -> Result<Self, Error> {
        let change = if let Some((store_id, id)) = row.store_id.zip(row.delivery_id) {
            Watched::Delivery(StoreId(store_id), DeliveryId(id))
        } else {
            let list = list_key("task_changes", row.courier_id, row.list_day.as_deref())?;
            let missing = || Error::inconsistent("task_changes", "a change of nothing");
            Watched::List(list.ok_or_else(missing)?)
        };
        Ok(Self {
            position: row.position,
            change,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::id::CourierId;
    use jiff::{SignedDuration, civil::Date};

    use super::*;
    use crate::{Storage, fixture};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    async fn queue(storage: &Arc<Storage>, changes: &[Watched]) {
        let changes = changes.to_vec();
        let write = storage.write(move |transaction| async move {
            let insert = insertion(changes.clone());
            insert.exec_without_returning(&transaction).await?;
            Ok::<_, Error>(())
        });
        write.await.unwrap();
    }

    async fn move_some(storage: &Arc<Storage>, limit: usize, now: Timestamp) -> Option<u64> {
        let write = storage
            .write(move |transaction| async move { move_to_log(&transaction, limit, now).await });
        write.await.unwrap()
    }

    fn changes() -> Vec<Watched> {
        let list = ListKey {
            day: Date::constant(2026, 12, 1),
            courier_id: CourierId::new(),
        };
        let delivery = || Watched::Delivery(StoreId::new(), DeliveryId::new());
        vec![delivery(), Watched::List(list), delivery()]
    }

    #[tokio::test]
    async fn changes_get_positions_in_the_order_in_which_they_were_queued() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let changes = changes();
            queue(&storage, &changes[..1]).await;
            queue(&storage, &changes[1..]).await;

            assert!(is_any_queued(storage.reader()).await.unwrap());
            assert_eq!(list(storage.reader(), 0, 10).await.unwrap(), []);
            assert_eq!(move_some(&storage, 2, NOW).await, Some(2));
            assert_eq!(move_some(&storage, 2, NOW).await, Some(1));
            assert_eq!(move_some(&storage, 2, NOW).await, Some(0));
            assert!(!is_any_queued(storage.reader()).await.unwrap());

            let expected = (1..).zip(&changes);
            let expected: Vec<_> = expected
                .map(|(position, change)| LoggedChange {
                    position,
                    change: *change,
                })
                .collect();
            assert_eq!(list(storage.reader(), 0, 10).await.unwrap(), expected);
            let page = list(storage.reader(), 1, 1).await.unwrap();
            assert_eq!(page, expected[1..2]);
            let bounds = bounds(storage.reader()).await.unwrap();
            assert_eq!((bounds.retained_after, bounds.last), (0, 3));
        }
    }

    #[tokio::test]
    async fn the_oldest_changes_are_removed_and_the_log_knows() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let hour = |hours| NOW + SignedDuration::from_hours(hours);
            for (number, change) in (0..).zip(changes()) {
                queue(&storage, &[change]).await;
                move_some(&storage, 9, hour(number)).await;
            }
            let remove = async |before, limit| {
                let write = storage.write(move |transaction| async move {
                    remove_oldest(&transaction, before, limit).await
                });
                write.await.unwrap()
            };

            assert_eq!(remove(hour(0), 9).await, 0);
            assert_eq!(remove(hour(2), 1).await, 1);
            assert_eq!(remove(hour(2), 9).await, 1);
            assert_eq!(remove(hour(2), 9).await, 0);

            let left = list(storage.reader(), 0, 9).await.unwrap();
            assert_eq!(left.iter().map(|of| of.position).collect::<Vec<_>>(), [3]);
            let bounds = bounds(storage.reader()).await.unwrap();
            assert_eq!((bounds.retained_after, bounds.last), (2, 3));
        }
    }

    #[tokio::test]
    async fn one_core_at_a_time_moves_changes_and_none_that_are_not_committed() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        let changes = changes();
        queue(&storage, &changes[..1]).await;
        let other = Arc::clone(&storage);
        let uncommitted = changes[1];
        let write = storage.write(move |transaction| {
            let other = Arc::clone(&other);
            async move {
                let insert = insertion([uncommitted]);
                insert.exec_without_returning(&transaction).await?;
                assert_eq!(move_some(&other, 9, NOW).await, Some(1));
                assert_eq!(move_to_log(&transaction, 9, NOW).await?, Some(1));
                assert_eq!(move_some(&other, 9, NOW).await, None);
                Ok::<_, Error>(())
            }
        });
        write.await.unwrap();

        let logged = list(storage.reader(), 0, 9).await.unwrap();
        let logged: Vec<_> = logged.iter().map(|of| of.change).collect();
        assert_eq!(logged, changes[..2]);
    }
}
