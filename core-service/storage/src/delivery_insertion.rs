//! Inserts deliveries, planned with definitions that a core has cached. With `PostgreSQL`, the
//! statement inserts nothing unless they are still the current ones, which saves the statements
//! that would read them. The only core of an `SQLite` file has the current ones.

use std::sync::{Arc, LazyLock};

use domain::{delivery::Delivery, id::StoreId};
use sea_orm::{ActiveModelTrait, DbBackend, EntityTrait, IdenStatic, Iterable, Statement, Value};

use super::{
    ConnectionTrait, Error,
    delivery_rows::{delivery_row, task_row},
    entity::{delivery, task},
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

    /// The parameters of [`ARE_CURRENT`].
    fn parameters(&self, store_id: StoreId) -> [Value; 5] {
        let time_slot = self.time_slot.as_ref();
        [
            store_id.0.into(),
            self.price_list.into(),
            time_slot.map(|slot| slot.definition.clone()).into(),
            self.zones.is_none().into(),
            self.zones.flatten().into(),
        ]
    }
}

/// Inserts a delivery with its tasks. Returns false, and inserts nothing, if a definition has
/// changed.
pub async fn insert(
    connection: &impl ConnectionTrait,
    delivery: &Delivery,
    versions: &DefinitionVersions,
) -> Result<bool, Error> {
    let store_id = delivery.store_id;
    let delivery_row = delivery_row(delivery);
    let task_rows = [&delivery.pickup, &delivery.dropoff].map(|task| task_row(store_id, task));
    if connection.get_database_backend() == DbBackend::Postgres {
        let mut values = Vec::from(versions.parameters(store_id));
        values.extend(values_of(delivery_row));
        values.extend(task_rows.into_iter().flat_map(values_of));
        let statement =
            Statement::from_sql_and_values(DbBackend::Postgres, &*INSERT_IF_CURRENT, values);
        let inserted = connection.execute_raw(statement).await?;
        return Ok(inserted.rows_affected() > 0);
    }
    delivery::Entity::insert(delivery_row)
        .exec_without_returning(connection)
        .await?;
    task::Entity::insert_many(task_rows)
        .exec_without_returning(connection)
        .await?;
    Ok(true)
}

/// Whether the definitions are current.
const ARE_CURRENT: &str = "\
    (SELECT version FROM price_lists WHERE store_id = $1 ORDER BY version DESC LIMIT 1)
        IS NOT DISTINCT FROM $2
    AND (SELECT definition FROM time_slots WHERE store_id = $1 ORDER BY id LIMIT 1)
        IS NOT DISTINCT FROM $3
    AND ($4 OR (SELECT version FROM zone_sets ORDER BY version DESC LIMIT 1)
        IS NOT DISTINCT FROM $5)";

/// Its parameters: those of [`ARE_CURRENT`], then the values of the delivery, its pickup and its
/// dropoff.
static INSERT_IF_CURRENT: LazyLock<String> = LazyLock::new(|| {
    let delivery_columns = names::<delivery::Entity>();
    let task_columns = names::<task::Entity>();
    let mut next = 6..;
    let mut parameters = |columns: &[String]| {
        let numbers: Vec<_> = columns.iter().zip(&mut next).collect();
        let parameters = numbers.iter().map(|(_, number)| format!("${number}"));
        parameters.collect::<Vec<_>>().join(", ")
    };
    format!(
        "WITH inserted_delivery AS (
            INSERT INTO deliveries ({}) SELECT {} WHERE {ARE_CURRENT} RETURNING id
        )
        INSERT INTO tasks ({})
        SELECT task.* FROM inserted_delivery, (VALUES ({}), ({})) AS task",
        delivery_columns.join(", "),
        parameters(&delivery_columns),
        task_columns.join(", "),
        parameters(&task_columns),
        parameters(&task_columns),
    )
});

/// The names of a table's columns.
fn names<E: EntityTrait>() -> Vec<String> {
    let columns = E::Column::iter();
    columns
        .map(|column| format!("\"{}\"", column.as_str()))
        .collect()
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
    use domain::{id::TimeSlotId, zone::Zones};
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
        let inserted = storage.insert_delivery(delivery.clone(), versions.clone());
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
            let apply = storage.write(move |transaction| {
                let price_list = price_list.clone();
                Box::pin(async move { price_lists::insert(transaction, &price_list).await })
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
            let apply = storage.write(move |transaction| {
                let changed = changed.clone();
                Box::pin(async move { time_slots::save(transaction, &changed).await })
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
            let apply = storage.write(move |transaction| {
                Box::pin(async move {
                    let stored = StoredZones {
                        version,
                        zones: Zones::default(),
                        created_at: NOW,
                    };
                    zones::insert(transaction, &stored).await
                })
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
