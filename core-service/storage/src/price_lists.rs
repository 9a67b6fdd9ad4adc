//! Price lists, stored as the operator's TOML. Versions are added, never changed.

use domain::id::StoreId;

use super::entity::{
    Instant,
    price_list::{ActiveModel, Column, Entity, Model},
};
use crate::prelude::*;

/// A version of a store's price list.
#[derive(Clone, Debug)]
pub struct StoredPriceList {
    pub store_id: StoreId,
    /// Counts from 1.
    pub version: i64,
    /// TOML.
    pub definition: String,
    pub created_at: Timestamp,
}

/// The current list: the last version.
pub async fn find_current(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Option<StoredPriceList>, Error> {
    rows::first(connection, newest_first(store_id)).await
}

/// A version of a list.
pub async fn find_version(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    version: i64,
) -> Result<Option<StoredPriceList>, Error> {
    rows::first(connection, Entity::find_by_id((store_id.0, version))).await
}

/// The list that was the current one at an instant.
pub async fn find_at(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    at: Timestamp,
) -> Result<Option<StoredPriceList>, Error> {
    let query = newest_first(store_id).filter(Column::CreatedAt.lte(Instant::from(at)));
    rows::first(connection, query).await
}

/// The versions and their instants of creation, newest first.
pub async fn list_versions(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    limit: u64,
) -> Result<Vec<(i64, Timestamp)>, Error> {
    let rows: Vec<(i64, Instant)> = newest_first(store_id)
        .select_only()
        .columns([Column::Version, Column::CreatedAt])
        .limit(limit)
        .into_tuple()
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|(version, created_at)| Ok((version, created_at.try_into()?)))
        .collect()
}

/// The current version; `None` if the store has no list.
pub async fn current_version(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Option<i64>, Error> {
    let select = "SELECT MAX(version) FROM price_lists WHERE store_id = $1";
    Ok(rows::find_value(connection, select, [store_id.0.into()])
        .await?
        .flatten())
}

fn newest_first(store_id: StoreId) -> Select<Entity> {
    let query = Entity::find().filter(Column::StoreId.eq(store_id.0));
    query.order_by_desc(Column::Version)
}

/// Adds a version.
pub async fn insert(
    connection: &impl ConnectionTrait,
    price_list: &StoredPriceList,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(price_list.store_id.0),
        version: Set(price_list.version),
        definition: Set(price_list.definition.clone()),
        created_at: Set(price_list.created_at.into()),
    };
    rows::insert(connection, row).await
}

impl TryFrom<Model> for StoredPriceList {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        Ok(Self {
            store_id: StoreId(row.store_id),
            version: row.version,
            definition: row.definition,
            created_at: row.created_at.try_into()?,
        })
    }
}
