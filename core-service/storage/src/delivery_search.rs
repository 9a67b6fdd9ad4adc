//! Searches the deliveries of all stores, by the indexes that other statements need: those of ids and references begin
//! with the store, and the texts of addresses have none.

use std::ops::RangeInclusive;

use domain::{
    address::Address,
    id::{DeliveryId, StoreId},
};
use sea_orm::{QueryResult, Value};

use super::entity::{AddressJson, Instant};
use crate::prelude::*;

/// The position of a delivery: the end of its dropoff's window, and its id.
pub type Position = (Timestamp, DeliveryId);

/// An address of a delivery, of its pickup or its dropoff.
#[derive(Clone, Debug)]
pub struct SearchedAddress {
    pub store_id: StoreId,
    pub position: Position,
    pub created_at: Timestamp,
    pub address: Address,
}

/// The newest deliveries whose ids are in a range.
pub async fn by_ids(
    connection: &impl ConnectionTrait,
    ids: &RangeInclusive<DeliveryId>,
    limit: usize,
) -> Result<Vec<(StoreId, DeliveryId)>, Error> {
    let values = [ids.start(), ids.end()].map(|id| id.0.into());
    in_each_store(connection, "id >= $1 AND id <= $2", values, limit).await
}

/// The newest deliveries with an external reference, which is unique in each store.
pub async fn by_external_reference(
    connection: &impl ConnectionTrait,
    external_reference: &str,
    limit: usize,
) -> Result<Vec<(StoreId, DeliveryId)>, Error> {
    let values = [external_reference.into()];
    in_each_store(connection, "external_reference = $1", values, limit).await
}

async fn in_each_store<const N: usize>(
    connection: &impl ConnectionTrait,
    condition: &str,
    values: [Value; N],
    limit: usize,
) -> Result<Vec<(StoreId, DeliveryId)>, Error> {
    let sql = statement(connection.get_database_backend(), condition, limit);
    let rows = rows::query(connection, &sql, values).await?;
    let keys = rows.iter().map(|row| -> Result<_, Error> {
        let (store_id, id) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        Ok((StoreId(store_id), DeliveryId(id)))
    });
    keys.collect()
}

fn statement(backend: DbBackend, condition: &str, limit: usize) -> String {
    if backend == DbBackend::Sqlite {
        return format!(
            "SELECT store_id, id FROM deliveries WHERE store_id IN (SELECT id FROM stores) AND {condition} \
             ORDER BY id DESC LIMIT {limit}"
        );
    }
    // By an index for each store. Of a join, PostgreSQL may make a plan that reads a whole index.
    format!(
        "SELECT found.store_id, found.id FROM stores CROSS JOIN LATERAL (SELECT store_id, id FROM deliveries \
         WHERE store_id = stores.id AND {condition} ORDER BY id DESC LIMIT {limit}) AS found \
         ORDER BY found.id DESC LIMIT {limit}"
    )
}

/// Both addresses of the last deliveries before a position whose dropoff ends at or after an instant, `limit` deliveries at
/// most.
pub async fn addresses(
    connection: &impl ConnectionTrait,
    from: Timestamp,
    before: Position,
    limit: usize,
) -> Result<Vec<SearchedAddress>, Error> {
    let (at, id) = before;
    let values: [Value; 3] = [
        Instant::from(from).into(),
        Instant::from(at).into(),
        id.0.into(),
    ];
    let sql = addresses_statement(connection.get_database_backend(), limit);
    let rows = rows::query(connection, &sql, values).await?;
    let read = |row: &QueryResult| -> Result<_, Error> {
        let instant = |column| -> Result<Timestamp, Error> {
            let instant: Instant = row.try_get_by_index(column)?;
            instant.try_into()
        };
        let address: AddressJson = row.try_get_by_index(4)?;
        Ok(SearchedAddress {
            store_id: StoreId(row.try_get_by_index(0)?),
            position: (instant(2)?, DeliveryId(row.try_get_by_index(1)?)),
            created_at: instant(3)?,
            address: address.0,
        })
    };
    rows.iter().map(read).collect()
}

fn addresses_statement(backend: DbBackend, limit: usize) -> String {
    let is_of_delivery = "tasks.store_id = searched.store_id AND tasks.delivery_id = searched.id";
    let tasks = if backend == DbBackend::Sqlite {
        format!("JOIN tasks ON {is_of_delivery}")
    } else {
        // As above. With the limit it is no join.
        format!(
            "CROSS JOIN LATERAL (SELECT tasks.address FROM tasks WHERE {is_of_delivery} LIMIT 2) AS tasks"
        )
    };
    format!(
        "SELECT searched.store_id, searched.id, searched.dropoff_before, searched.created_at, tasks.address FROM \
         (SELECT store_id, id, dropoff_before, created_at FROM deliveries WHERE erased_at IS NULL AND dropoff_before >= $1 \
         AND (dropoff_before, id) < ($2, $3) ORDER BY dropoff_before DESC, id DESC LIMIT {limit}) AS searched {tasks}"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::SignedDuration;
    use sea_orm::Statement;

    use super::*;
    use crate::{fixture, stores};

    fn hours(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    /// The plan in SQLite.
    async fn plan(sql: &str, values: impl IntoIterator<Item = Value>) -> String {
        let (_directory, storage) = fixture::sqlite().await;
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let statement = Statement::from_sql_and_values(DbBackend::Sqlite, sql, values);
        let rows = storage.reader().query_all_raw(statement).await.unwrap();
        let details = rows.iter().map(|row| row.try_get("", "detail").unwrap());
        details.collect::<Vec<String>>().join("\n")
    }

    #[tokio::test]
    async fn each_search_is_by_an_index() {
        let id: Value = Uuid::nil().into();
        let instant: Value = Instant(0).into();
        let in_stores = |condition| statement(DbBackend::Sqlite, condition, 31);
        for (sql, values, index) in [
            (
                in_stores("id >= $1 AND id <= $2"),
                vec![id.clone(), id.clone()],
                "(store_id=? AND id>? AND id<?)",
            ),
            (
                in_stores("external_reference = $1"),
                vec!["42".into()],
                "deliveries_by_external_reference (store_id=? AND external_reference=?)",
            ),
            (
                addresses_statement(DbBackend::Sqlite, 500),
                vec![instant.clone(), instant, id],
                "deliveries_by_day (",
            ),
        ] {
            let plan = plan(&sql, values).await;

            assert!(plan.contains(index), "{plan}");
            let is_scan = plan.contains("SCAN deliveries") || plan.contains("SCAN tasks");
            assert!(!is_scan, "{plan}");
        }
    }

    #[tokio::test]
    async fn deliveries_are_found_in_every_store() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let mut expected = Vec::new();
            for name in ["A", "B"] {
                let store = fixture::store(name);
                stores::insert(storage.reader(), &store).await.unwrap();
                for (reference, end) in [("42", 2), ("43", 1)] {
                    let mut delivery = fixture::delivery(store.id, Timestamp::UNIX_EPOCH);
                    delivery.external_reference = Some(reference.to_owned());
                    delivery.dropoff.window.before = hours(end);
                    expected.push((store.id, delivery.id));
                    let new = fixture::new_delivery(delivery);
                    assert!(storage.insert_delivery(new).await.unwrap());
                }
            }
            let reader = storage.reader();

            let all = expected[0].1..=expected[3].1;
            let newest_first: Vec<_> = expected.iter().rev().copied().collect();
            assert_eq!(by_ids(reader, &all, 9).await.unwrap(), newest_first);
            assert_eq!(by_ids(reader, &all, 2).await.unwrap(), newest_first[..2]);
            let one = expected[1].1..=expected[1].1;
            assert_eq!(by_ids(reader, &one, 9).await.unwrap(), [expected[1]]);
            let found = by_external_reference(reader, "42", 9).await.unwrap();
            assert_eq!(found, [expected[2], expected[0]]);
            let found = by_external_reference(reader, "44", 9).await.unwrap();
            assert!(found.is_empty());

            let end_at = |end| (hours(end), DeliveryId(Uuid::nil()));
            let (mut before, mut found) = (end_at(3), Vec::new());
            loop {
                let batch = addresses(reader, hours(1), before, 1).await.unwrap();
                let Some(last) = batch.iter().map(|searched| searched.position).min() else {
                    break;
                };
                assert_eq!(batch.len(), 2, "the pickup's and the dropoff's");
                found.push((batch[0].store_id, last.1));
                before = last;
            }
            assert_eq!(found, [expected[2], expected[0], expected[3], expected[1]]);
            let batch = addresses(reader, hours(1), end_at(2), 9).await.unwrap();
            let ids: BTreeSet<_> = batch.iter().map(|searched| searched.position.1).collect();
            assert_eq!(ids, [expected[1].1, expected[3].1].into());
        }
    }
}
