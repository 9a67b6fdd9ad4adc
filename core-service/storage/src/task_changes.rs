//! The log of what watchers of tasks get: changed deliveries and lists of couriers. A transaction queues its changes;
//! once it is committed, they are moved to the log with positions 1, 2, 3 and so on, in one transaction at a time. The
//! event of a new delivery is written then, not when it is created: in one statement for many, which costs a create
//! nothing.

use std::sync::LazyLock;

use domain::{
    courier::ListKey,
    event::{EventName, LogBounds},
    id::{DeliveryId, IncidentId, StoreId},
    incident::Incident,
};
use sea_orm::{InsertMany, Value};

use super::{
    entity::{
        Instant,
        queued_task_change::{ActiveModel, Entity},
        task_change,
    },
    events::{self, QueueHeads},
    tasks::list_key,
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
    /// The incident of a task of the delivery that was reported or closed.
    pub incident: Option<IncidentId>,
}

/// The statement that queues changes. None may be none.
pub(super) fn insertion(changes: impl IntoIterator<Item = Watched>) -> InsertMany<ActiveModel> {
    Entity::insert_many(changes.into_iter().map(row))
}

/// The row that queues an incident, which was reported or closed.
pub(super) fn of_incident(incident: &Incident) -> ActiveModel {
    ActiveModel {
        incident_id: Set(Some(incident.id.0)),
        ..row(Watched::Delivery(incident.store_id, incident.delivery_id))
    }
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
        is_creation: Set(None),
        incident_id: Set(None),
    }
}

/// What a transaction moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub changes: usize,
    /// How many of them are new deliveries.
    pub created: usize,
}

/// Moves committed changes to the log, in the order in which they were queued, and adds the events of new deliveries
/// with their numbers. Returns what it moved; `None` if another core is moving some or numbering events, which may not
/// see the newest.
pub async fn move_to_log(
    transaction: &impl ConnectionTrait,
    limit: usize,
    heads: QueueHeads,
    now: Timestamp,
) -> Result<Option<Moved>, Error> {
    let is_postgres = transaction.get_database_backend() == DbBackend::Postgres;
    let lock = if is_postgres {
        "FOR UPDATE SKIP LOCKED"
    } else {
        ""
    };
    let select = format!(
        "SELECT task_change_logs.last_position, event_sequencers.last_position \
         FROM task_change_logs, event_sequencers {lock}"
    );
    let found = rows::query(transaction, &select, []).await?;
    let Some(last) = found.first() else {
        return Ok(None);
    };
    let [last_change, last_event]: [i64; 2] =
        [last.try_get_by_index(0)?, last.try_get_by_index(1)?];
    let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
    let now = Instant::from(now).into();
    let head = heads.change.into();
    let values = [last_change.into(), last_event.into(), now, limit, head];
    let rows = if is_postgres {
        rows::query(transaction, &MOVE, values).await?
    } else {
        let (select, changes) = &*MOVE_OVER_SQLITE;
        let rows = rows::query(transaction, select, values.clone()).await?;
        for statement in changes {
            rows::run(transaction, statement, values.clone()).await?;
        }
        rows
    };
    let mut moved = Moved {
        changes: rows.len(),
        created: 0,
    };
    for row in &rows {
        let is_creation: bool = row.try_get_by_index(0)?;
        moved.created += usize::from(is_creation);
    }
    Ok(Some(moved))
}

/// The oldest changes of the queue. Not `id IN (SELECT …)`: PostgreSQL may have planned for a queue of one row, and would
/// read all of a long one for each.
const DELETE: &str = "DELETE FROM task_change_queue WHERE id >= $5 AND id <= (
    SELECT MAX(id) FROM (SELECT id FROM task_change_queue WHERE id >= $5 ORDER BY id LIMIT $4) AS oldest
)";

/// The parameters are the last positions of changes and events, the time, the limit and the queue's head. The event of a
/// new delivery has its id: there is one.
static MOVE: LazyLock<String> = LazyLock::new(|| {
    let (select, changes) = moves("moved");
    let changes = (0..).zip(changes);
    let changes: Vec<_> = changes
        .map(|(number, change)| format!("change_{number} AS ({change})"))
        .collect();
    format!(
        "WITH moved AS ({DELETE} RETURNING *), {} {select}",
        changes.join(", ")
    )
});

/// The same over `SQLite`, where nothing changes between two statements of a transaction.
static MOVE_OVER_SQLITE: LazyLock<(String, Vec<String>)> = LazyLock::new(|| {
    let (select, changes) =
        moves("(SELECT * FROM task_change_queue WHERE id >= $5 ORDER BY id LIMIT $4) AS moved");
    let delete = [DELETE.to_owned()];
    (select, changes.into_iter().chain(delete).collect())
});

/// What reads the moved changes, and what follows from them.
fn moves(moved: &str) -> (String, [String; 5]) {
    let select = format!("SELECT COALESCE(is_creation, false) FROM {moved}");
    let changes = [
        format!(
            "INSERT INTO task_changes
                (position, moved_at, store_id, delivery_id, courier_id, list_day, incident_id)
            SELECT $1 + ROW_NUMBER() OVER (ORDER BY id), $3,
                store_id, delivery_id, courier_id, list_day, incident_id
            FROM {moved}"
        ),
        format!(
            "INSERT INTO events
                (store_id, id, name, object_collection, object_id, created_at, number, position)
            SELECT moved.store_id, moved.delivery_id, '{}', '{}', moved.delivery_id, $3,
                COALESCE(
                    (SELECT last_number FROM event_counters WHERE store_id = moved.store_id), 0
                ) + ROW_NUMBER() OVER (PARTITION BY moved.store_id ORDER BY moved.id),
                $2 + ROW_NUMBER() OVER (ORDER BY moved.id)
            FROM {moved} WHERE moved.is_creation",
            EventName::DeliveryCreated.as_str(),
            events::DELIVERIES,
        ),
        format!(
            "INSERT INTO event_counters (store_id, last_number, retained_after)
            SELECT store_id, COUNT(*), 0 FROM {moved} WHERE is_creation GROUP BY store_id
            ON CONFLICT (store_id) DO UPDATE
                SET last_number = event_counters.last_number + excluded.last_number"
        ),
        format!(
            "UPDATE task_change_logs SET last_position = last_position + (SELECT COUNT(*) FROM {moved})"
        ),
        format!(
            "UPDATE event_sequencers
            SET last_position = last_position + (SELECT COUNT(*) FROM {moved} WHERE is_creation)"
        ),
    ];
    (select, changes)
}

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
            incident: row.incident_id.map(IncidentId),
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

    async fn move_some(storage: &Arc<Storage>, limit: usize, now: Timestamp) -> Option<usize> {
        let write = storage.write(move |transaction| async move {
            move_to_log(&transaction, limit, QueueHeads::BEGINNING, now).await
        });
        let moved = write.await.unwrap()?;
        assert_eq!(moved.created, 0);
        Some(moved.changes)
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

            let mut heads = QueueHeads::BEGINNING;
            let mut waiting = async || {
                let waiting = events::waiting(storage.reader(), &mut heads, NOW).await;
                waiting.unwrap().changes
            };
            assert!(waiting().await);
            assert_eq!(list(storage.reader(), 0, 10).await.unwrap(), []);
            assert_eq!(move_some(&storage, 2, NOW).await, Some(2));
            assert_eq!(move_some(&storage, 2, NOW).await, Some(1));
            assert_eq!(move_some(&storage, 2, NOW).await, Some(0));
            assert!(!waiting().await);

            let expected = (1..).zip(&changes);
            let expected: Vec<_> = expected
                .map(|(position, change)| LoggedChange {
                    position,
                    change: *change,
                    incident: None,
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
                let moved = move_to_log(&transaction, 9, QueueHeads::BEGINNING, NOW).await?;
                assert_eq!(moved.unwrap().changes, 1);
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
