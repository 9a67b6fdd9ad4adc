//! Reads and writes stores.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    brand::{Brand, Colour, Logo},
    id::StoreId,
    store::{self, Store},
};

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Storage,
    entity::{
        AddressJson, ByPosition as _, Instant, ServiceAreaJson,
        store::{ActiveModel, Column, Entity, Model},
    },
    shared_reads::SharedRow,
};
use crate::prelude::*;

pub async fn find(connection: &impl ConnectionTrait, id: StoreId) -> Result<Option<Store>, Error> {
    rows::first(connection, Entity::find_by_id(id.0)).await
}

/// Like [`find`], in a statement with reads that arrive at the same time.
pub async fn find_shared(storage: &Storage, id: StoreId) -> Result<Option<Store>, Error> {
    storage.stores.find(id.0).await
}

impl SharedRow for Store {
    type Key = Uuid;

    const FROM: &'static str = "stores";
    const KEY: &'static [&'static str] = &["id"];

    fn columns() -> Vec<String> {
        rows::columns::<Entity>().collect()
    }

    fn values(id: &Self::Key) -> Vec<Value> {
        vec![(*id).into()]
    }

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr> {
        row.try_get_by_index(Column::Id as usize)
    }

    fn read(row: &QueryResult) -> Result<Self, Error> {
        Model::at(row, 0)?.try_into()
    }
}

/// Like [`find`], locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    id: StoreId,
) -> Result<Option<Store>, Error> {
    rows::first(transaction, Entity::find_by_id(id.0).lock_exclusive()).await
}

/// Serializes transactions that change data of a store.
pub async fn lock(transaction: &impl ConnectionTrait, id: StoreId) -> Result<(), Error> {
    find_and_lock(transaction, id).await.map(|_| ())
}

/// Those of these stores that exist.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = StoreId>,
) -> Result<BTreeMap<StoreId, Store>, Error> {
    let ids: BTreeSet<_> = ids.into_iter().map(|id| id.0).collect();
    let query = Entity::find().filter(Column::Id.is_in(padded(ids)));
    let stores: Vec<Store> = rows::all(connection, query).await?;
    Ok(stores.into_iter().map(|store| (store.id, store)).collect())
}

/// All stores, oldest first.
pub async fn list(connection: &impl ConnectionTrait) -> Result<Vec<Store>, Error> {
    rows::all(connection, Entity::find().order_by_asc(Column::Id)).await
}

pub async fn insert(connection: &impl ConnectionTrait, store: &Store) -> Result<(), Error> {
    rows::insert(connection, row(store)).await
}

pub async fn update(connection: &impl ConnectionTrait, store: &Store) -> Result<(), Error> {
    rows::update(connection, row(store)).await
}

pub async fn find_logo(
    connection: &impl ConnectionTrait,
    id: StoreId,
) -> Result<Option<Logo>, Error> {
    let select = "SELECT content FROM store_logos WHERE store_id = $1";
    let rows = rows::query(connection, select, [id.0.into()]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let logo = Logo::parse(row.try_get_by_index(0)?);
    logo.map(Some)
        .map_err(|error| Error::inconsistent("store_logos", error))
}

/// Replaces the logo of a store; `None` removes it. Requires the store's lock, and its row with the logo's version.
pub async fn set_logo(
    transaction: &impl ConnectionTrait,
    id: StoreId,
    logo: Option<&Logo>,
) -> Result<(), Error> {
    let Some(logo) = logo else {
        let delete = "DELETE FROM store_logos WHERE store_id = $1";
        return rows::run(transaction, delete, [id.0.into()]).await;
    };
    let set = "INSERT INTO store_logos (store_id, content) VALUES ($1, $2)
        ON CONFLICT (store_id) DO UPDATE SET content = excluded.content";
    let values = [id.0.into(), logo.content().into()];
    rows::run(transaction, set, values).await
}

fn row(store: &Store) -> ActiveModel {
    ActiveModel {
        id: Set(store.id.0),
        display_name: Set(store.display_name.clone()),
        time_zone: Set(store.time_zone_name().to_owned()),
        currency: Set(store.currency.code().to_owned()),
        country: Set(store.country.as_str().to_owned()),
        default_address: Set(store.default_address.clone().map(AddressJson)),
        created_at: Set(store.created_at.into()),
        service_area: Set(store.service_area.clone().map(ServiceAreaJson)),
        refuses_unpriced: Set(store.refuses_unpriced),
        has_tracking: Set(store.has_tracking),
        telephone: Set(store.telephone.clone()),
        colour: Set(store.brand.colour.map(|colour| colour.number().into())),
        logo_version: Set(store.brand.logo_version.clone()),
        disabled_at: Set(store.disabled_at.map(Into::into)),
    }
}

impl TryFrom<Model> for Store {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        let inconsistent = |error: &dyn std::fmt::Display| Error::inconsistent("stores", error);
        let colour = row
            .colour
            .map(|number| Colour::new(u32::try_from(number).unwrap_or_default()));
        Ok(Self {
            id: StoreId(row.id),
            display_name: row.display_name,
            time_zone: store::parse_time_zone(&row.time_zone).map_err(|e| inconsistent(&e))?,
            currency: store::parse_currency(&row.currency).map_err(|e| inconsistent(&e))?,
            country: row.country.parse().map_err(|e| inconsistent(&e))?,
            default_address: row.default_address.map(|address| address.0),
            created_at: row.created_at.try_into()?,
            service_area: row.service_area.map(|area| area.0),
            refuses_unpriced: row.refuses_unpriced,
            has_tracking: row.has_tracking,
            telephone: row.telephone,
            brand: Brand {
                colour: colour.transpose().map_err(|e| inconsistent(&e))?,
                logo_version: row.logo_version,
            },
            disabled_at: Instant::optional(row.disabled_at)?,
        })
    }
}
