//! Inserts deliveries, planned with definitions that a core has cached. With `PostgreSQL`, the
//! statement inserts nothing unless they are still the current ones, which saves the statements
//! that would read them. The only core of an `SQLite` file has the current ones. The texts of the
//! statements are constant: each database plans them once for a connection.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use domain::delivery::Delivery;
use sea_orm::{ActiveModelTrait, DbBackend, EntityTrait, Iterable, Statement, Value};

use super::{
    ConnectionTrait, Error,
    delivery_rows::{delivery_row, task_row},
    entity::{delivery, task},
    rows,
    time_slots::StoredTimeSlot,
};

/// The definitions of a store that a delivery was planned with.
#[derive(Clone, Debug, Default)]
pub struct DefinitionVersions {
    /// The version of the price list; `None` if the store had none.
    pub price_list: Option<i64>,
    /// The default time slot, which has no version; `None` if the store had none.
    pub time_slot: Option<Arc<StoredTimeSlot>>,
    /// The version of the zones (`None` before the first), if the plan depends on them.
    pub zones: Option<Option<i64>>,
}

impl DefinitionVersions {
    /// Adds a version of the zones that the plan depends on. Of two different ones, the older is
    /// not current, so it is the one to check.
    pub fn add_zones(&mut self, version: Option<i64>) {
        let oldest = self.zones.map_or(version, |known| known.min(version));
        self.zones = Some(oldest);
    }

    /// The values that [`ARE_CURRENT`] compares.
    fn values(&self) -> [Value; 4] {
        let time_slot = self.time_slot.as_ref();
        [
            self.price_list.into(),
            time_slot.map(|slot| slot.definition.clone()).into(),
            self.zones.is_none().into(),
            self.zones.flatten().into(),
        ]
    }
}

/// A new delivery, and the definitions that it was planned with.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    pub delivery: Delivery,
    pub versions: DefinitionVersions,
}

/// Inserts a delivery with its tasks. Returns false, and inserts nothing, if a definition has
/// changed.
pub async fn insert(connection: &impl ConnectionTrait, new: &NewDelivery) -> Result<bool, Error> {
    if connection.get_database_backend() == DbBackend::Postgres {
        return insert_together(connection, &[new]).await;
    }
    insert_all(connection, &[new]).await?;
    Ok(true)
}

/// Inserts deliveries with their tasks in the transaction of an `SQLite` connection, two statements
/// for each [`MAX_TOGETHER`] of them: each statement costs two changes of threads.
pub(super) async fn insert_all(
    connection: &impl ConnectionTrait,
    deliveries: &[&NewDelivery],
) -> Result<(), Error> {
    for batch in deliveries.chunks(MAX_TOGETHER) {
        let delivery_rows = batch.iter().map(|new| delivery_row(&new.delivery));
        let task_rows = batch.iter().flat_map(|new| task_rows(&new.delivery));
        let values: [Vec<Value>; 2] = [
            delivery_rows.flat_map(values_of).collect(),
            task_rows.flat_map(values_of).collect(),
        ];
        for (sql, values) in INSERT[batch.len() - 1].iter().zip(values) {
            let statement = Statement::from_sql_and_values(DbBackend::Sqlite, sql, values);
            connection.execute_raw(statement).await?;
        }
    }
    Ok(())
}

/// The statements of `SQLite` that insert 1, 2, 3 … [`MAX_TOGETHER`] deliveries, and their tasks.
static INSERT: LazyLock<Vec<[String; 2]>> = LazyLock::new(|| {
    let statements = |size| {
        [
            insert_rows::<delivery::Entity>(size),
            insert_rows::<task::Entity>(2 * size),
        ]
    };
    (1..=MAX_TOGETHER).map(statements).collect()
});

fn insert_rows<E: EntityTrait>(count: usize) -> String {
    let names = rows::names::<E>();
    let row = format!("({})", vec!["?"; names.len()].join(", "));
    let (table, names, rows) = (
        E::default().table_name(),
        names.join(", "),
        vec![row; count].join(", "),
    );
    format!("INSERT INTO {table} ({names}) VALUES {rows}")
}

/// Inserts deliveries in one statement of `PostgreSQL`. Their number is one of [`BATCH_SIZES`]. Returns
/// false, and inserts none, if a definition of one of them has changed.
pub(super) async fn insert_together(
    connection: &impl ConnectionTrait,
    deliveries: &[&NewDelivery],
) -> Result<bool, Error> {
    let sql = INSERT_IF_CURRENT.get(&deliveries.len());
    let sql = sql.expect("the number of deliveries is one of BATCH_SIZES");
    let rows = deliveries.iter().flat_map(|new| {
        let versions = new.versions.values().into_iter();
        versions.chain(values_of(delivery_row(&new.delivery)))
    });
    let task_rows = deliveries.iter().flat_map(|new| task_rows(&new.delivery));
    let values = rows.chain(task_rows.flat_map(values_of));
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
    let inserted = connection.execute_raw(statement).await?;
    Ok(inserted.rows_affected() > 0)
}

/// How many deliveries one statement inserts at most.
const MAX_TOGETHER: usize = 16;

/// The numbers of deliveries that one statement of `PostgreSQL` can insert. They are few, because each of
/// its connections plans each of the statements.
pub(super) const BATCH_SIZES: [usize; 5] = [1, 2, 4, 8, MAX_TOGETHER];

/// Whether the definitions of a planned delivery are current.
const ARE_CURRENT: &str = "\
    (SELECT version FROM price_lists WHERE store_id = planned.store_id
        ORDER BY version DESC LIMIT 1) IS NOT DISTINCT FROM planned.price_list
    AND (SELECT definition FROM time_slots WHERE store_id = planned.store_id
        ORDER BY id LIMIT 1) IS NOT DISTINCT FROM planned.time_slot
    AND (planned.needs_no_zones OR (SELECT version FROM zone_sets
        ORDER BY version DESC LIMIT 1) IS NOT DISTINCT FROM planned.zones)";

/// The statements by the number of deliveries. Their parameters: for each delivery its definitions
/// and its row, then for each delivery its tasks' rows.
static INSERT_IF_CURRENT: LazyLock<BTreeMap<usize, String>> = LazyLock::new(|| {
    BATCH_SIZES
        .map(|count| (count, insert_if_current(count)))
        .into()
});

fn insert_if_current(count: usize) -> String {
    let deliveries = rows::names::<delivery::Entity>();
    let tasks = rows::names::<task::Entity>();
    let mut parameters = 1..;
    let delivery_rows = rows::placeholders(&mut parameters, count, 4 + deliveries.len());
    let task_rows = rows::placeholders(&mut parameters, 2 * count, tasks.len());
    let (deliveries, tasks) = (deliveries.join(", "), tasks.join(", "));
    format!(
        "WITH planned (price_list, time_slot, needs_no_zones, zones, {deliveries}) AS (
            VALUES {delivery_rows}
        ), inserted AS (
            INSERT INTO deliveries ({deliveries}) SELECT {deliveries} FROM planned
            WHERE (SELECT bool_and({ARE_CURRENT}) FROM planned) RETURNING id
        )
        INSERT INTO tasks ({tasks})
        SELECT task.* FROM (VALUES {task_rows}) AS task WHERE EXISTS (SELECT id FROM inserted)"
    )
}

fn task_rows(delivery: &Delivery) -> [task::ActiveModel; 2] {
    let tasks = [&delivery.pickup, &delivery.dropoff];
    tasks.map(|task| task_row(delivery.store_id, task))
}

/// The values of a row, in the order of its columns.
fn values_of<A: ActiveModelTrait>(mut row: A) -> Vec<Value> {
    let columns = <A::Entity as EntityTrait>::Column::iter();
    columns
        .filter_map(|column| row.take(column).into_value())
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::{
        id::{StoreId, TimeSlotId},
        zone::Zones,
    };
    use jiff::Timestamp;

    use super::*;
    use crate::{
        Storage, deliveries, fixture,
        price_lists::{self, StoredPriceList},
        time_slots,
        zones::{self, StoredZones},
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Whether a delivery planned with these definitions is inserted.
    async fn is_inserted(
        storage: &Storage,
        store_id: StoreId,
        versions: &DefinitionVersions,
    ) -> bool {
        let delivery = fixture::delivery(store_id, NOW);
        let inserted = storage.insert_delivery(NewDelivery {
            delivery: delivery.clone(),
            versions: versions.clone(),
        });
        let inserted = inserted.await.unwrap();
        let found = deliveries::find(storage.reader(), store_id, delivery.id);
        assert_eq!(found.await.unwrap(), inserted.then_some(delivery));
        inserted
    }

    #[tokio::test]
    async fn postgres_inserts_a_delivery_only_with_the_current_definitions() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        let (store_id, other_store) = (StoreId::new(), StoreId::new());
        let mut versions = DefinitionVersions::default();
        assert!(is_inserted(&storage, store_id, &versions).await);

        for version in [1, 2] {
            let price_list = StoredPriceList {
                store_id,
                version,
                definition: String::new(),
                created_at: NOW,
            };
            let apply = storage.write(move |transaction| async move {
                price_lists::insert(&transaction, &price_list).await
            });
            apply.await.unwrap();
            assert!(!is_inserted(&storage, store_id, &versions).await);
            versions.price_list = Some(version);
            assert!(is_inserted(&storage, store_id, &versions).await);
        }

        let mut time_slot = StoredTimeSlot {
            store_id,
            id: TimeSlotId::new(),
            display_name: "slot".to_owned(),
            definition: "capacity = 1".to_owned(),
            updated_at: NOW,
        };
        for definition in ["capacity = 1", "capacity = 2"] {
            definition.clone_into(&mut time_slot.definition);
            let changed = time_slot.clone();
            let apply = storage.write(move |transaction| async move {
                time_slots::save(&transaction, &changed).await
            });
            apply.await.unwrap();
            assert!(!is_inserted(&storage, store_id, &versions).await);
            versions.time_slot = Some(Arc::new(time_slot.clone()));
            assert!(is_inserted(&storage, store_id, &versions).await);
        }

        let other = DefinitionVersions::default();
        assert!(is_inserted(&storage, other_store, &other).await);
        assert!(!is_inserted(&storage, other_store, &versions).await);
    }

    #[tokio::test]
    async fn postgres_checks_the_zones_of_a_plan_that_depends_on_them() {
        let Some(storage) = fixture::postgres().await else {
            return;
        };
        let store_id = StoreId::new();
        let with_zones = |used: &[Option<i64>]| {
            let mut versions = DefinitionVersions::default();
            for version in used {
                versions.add_zones(*version);
            }
            versions
        };
        assert!(is_inserted(&storage, store_id, &with_zones(&[None])).await);
        for version in [1, 2] {
            let apply = storage.write(move |transaction| async move {
                let stored = StoredZones {
                    version,
                    zones: Zones::default(),
                    created_at: NOW,
                };
                zones::insert(&transaction, &stored).await
            });
            apply.await.unwrap();
        }

        for (used, expected) in [
            (&[] as &[_], true),
            (&[Some(2)], true),
            (&[Some(2), Some(2)], true),
            (&[None], false),
            (&[Some(1)], false),
            (&[Some(1), Some(2)], false),
            (&[Some(2), Some(1)], false),
        ] {
            let inserted = is_inserted(&storage, store_id, &with_zones(used)).await;
            assert_eq!(inserted, expected, "{used:?}");
        }
    }
}
