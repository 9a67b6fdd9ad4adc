//! The lists of couriers. A change locks the lists, and then the deliveries of their tasks.

mod placing;

pub use self::placing::{PlacedDelivery, place};

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    courier::ListKey,
    id::{ApiClientId, DeliveryId, StoreId, TaskId},
    task::Task,
};
use jiff::civil::Date;
use sea_orm::Value;

use super::{
    entity::{
        ByPosition as _, Instant,
        courier_list::{ActiveModel, Column, Entity, Model},
        task,
    },
    task_changes::{self, Watched},
    tasks::list_key,
};
use crate::prelude::*;

/// How a list was changed last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub at: Timestamp,
    pub by: ApiClientId,
}

/// Locks lists until the transaction ends, in the order of their keys. Those that are not there yet are made.
pub async fn lock(
    transaction: &impl ConnectionTrait,
    lists: &BTreeSet<ListKey>,
    change: &Change,
) -> Result<(), Error> {
    let key = [Column::Day, Column::CourierId];
    // Also a lock: PostgreSQL locks the row that it would update, row by row.
    let locked = OnConflict::columns(key)
        .update_column(Column::CourierId)
        .to_owned();
    // Executes no statement if there is no row.
    let insert = Entity::insert_many(lists.iter().map(|list| row(list, change)));
    let insert = insert.on_conflict(locked);
    insert.exec_without_returning(transaction).await?;
    Ok(())
}

/// Records who has changed lists, which are locked, and that they changed, for watchers.
pub async fn record_change(
    transaction: &impl ConnectionTrait,
    lists: &BTreeSet<ListKey>,
    change: &Change,
) -> Result<(), Error> {
    if lists.is_empty() {
        return Ok(());
    }
    let lists = padded(lists.iter().copied());
    let update = format!(
        "WITH changed (day, courier_id) AS (VALUES {})
        UPDATE courier_lists SET changed_at = $1, changed_by = $2 FROM changed
        WHERE courier_lists.day = changed.day AND courier_lists.courier_id = changed.courier_id",
        rows::placeholders(&mut (3..), lists.len(), 2)
    );
    let keys = lists
        .iter()
        .flat_map(|list| [list.day.to_string().into(), list.courier_id.0.into()]);
    let values = [Instant::from(change.at).into(), change.by.0.into()];
    rows::run(transaction, &update, values.into_iter().chain(keys)).await?;
    // A change may come twice.
    let queued = task_changes::insertion(lists.into_iter().map(Watched::List));
    queued.exec_without_returning(transaction).await?;
    Ok(())
}

fn row(list: &ListKey, change: &Change) -> ActiveModel {
    ActiveModel {
        day: Set(list.day.to_string()),
        courier_id: Set(list.courier_id.0),
        changed_at: Set(change.at.into()),
        changed_by: Set(change.by.0),
    }
}

/// The lists of a day, each with its last change.
pub async fn of_day(
    connection: &impl ConnectionTrait,
    day: Date,
) -> Result<BTreeMap<ListKey, Change>, Error> {
    let query = Entity::find().filter(Column::Day.eq(day.to_string()));
    let rows = query.all(connection).await?;
    rows.into_iter().map(|row| change(&row)).collect()
}

fn change(row: &Model) -> Result<(ListKey, Change), Error> {
    let list = list_key("courier_lists", Some(row.courier_id), Some(&row.day))?;
    let missing = || Error::inconsistent("courier_lists", "no day");
    let change = Change {
        at: row.changed_at.try_into()?,
        by: ApiClientId(row.changed_by),
    };
    Ok((list.ok_or_else(missing)?, change))
}

/// Which tasks are read.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Those in the lists of a day.
    Day(Date),
    /// Those in lists.
    Lists(BTreeSet<ListKey>),
    /// With the other tasks of their deliveries.
    Tasks(BTreeSet<TaskId>),
}

/// The tasks of any store, each with its store, in no particular order.
pub async fn tasks(
    connection: &impl ConnectionTrait,
    selection: &Selection,
) -> Result<Vec<(StoreId, Task)>, Error> {
    let is_empty = match selection {
        Selection::Day(_) => false,
        Selection::Lists(lists) => lists.is_empty(),
        Selection::Tasks(ids) => ids.is_empty(),
    };
    if is_empty {
        return Ok(Vec::new());
    }
    let (sql, values) = statement(selection);
    let rows = rows::query(connection, &sql, values).await?;
    let tasks = rows.iter().map(|row| {
        let row = task::Model::at(row, 0)?;
        Ok((StoreId(row.store_id), row.try_into()?))
    });
    tasks.collect()
}

fn statement(selection: &Selection) -> (String, Vec<Value>) {
    let columns: Vec<_> = rows::columns::<task::Entity>().collect();
    let columns = columns.join(", ");
    let mut parameters = 1..;
    match selection {
        Selection::Day(day) => {
            let condition = "tasks.courier_id IS NOT NULL AND tasks.list_day = $1";
            let sql = format!("SELECT {columns} FROM tasks WHERE {condition}");
            (sql, vec![day.to_string().into()])
        }
        Selection::Lists(lists) => {
            let lists = padded(lists.iter().copied());
            let keys = rows::placeholders(&mut parameters, lists.len(), 2);
            let values = lists
                .into_iter()
                .flat_map(|list| [list.day.to_string().into(), list.courier_id.0.into()]);
            let sql = format!(
                "SELECT {columns} FROM tasks WHERE tasks.courier_id IS NOT NULL \
                 AND (tasks.list_day, tasks.courier_id) IN (VALUES {keys})"
            );
            (sql, values.collect())
        }
        Selection::Tasks(ids) => {
            let ids = padded(ids.iter().map(|id| id.0));
            let keys = rows::placeholders(&mut parameters, 1, ids.len());
            let sql = format!(
                "SELECT {columns} FROM tasks JOIN tasks AS named \
                 ON named.store_id = tasks.store_id AND named.delivery_id = tasks.delivery_id \
                 WHERE named.id IN {keys}"
            );
            (sql, ids.into_iter().map(Into::into).collect())
        }
    }
}

/// Locks deliveries until the transaction ends, in the order of their ids; false if they need no lock, as over
/// `SQLite`, which has a single writer.
pub async fn lock_deliveries(
    transaction: &impl ConnectionTrait,
    deliveries: &BTreeSet<(StoreId, DeliveryId)>,
) -> Result<bool, Error> {
    if transaction.get_database_backend() == DbBackend::Sqlite || deliveries.is_empty() {
        return Ok(false);
    }
    let deliveries = padded(deliveries.iter().copied());
    let keys = rows::placeholders(&mut (1..), deliveries.len(), 2);
    let sql = format!(
        "SELECT id FROM deliveries WHERE (store_id, id) IN (VALUES {keys}) ORDER BY id, store_id FOR UPDATE"
    );
    let values = deliveries
        .into_iter()
        .flat_map(|(store, id)| [store.0.into(), id.0.into()]);
    rows::query(transaction, &sql, values.collect::<Vec<_>>()).await?;
    Ok(true)
}
