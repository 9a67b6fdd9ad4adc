//! Reads and writes couriers.

use std::collections::{BTreeMap, BTreeSet};

use domain::{courier::Courier, id::CourierId};

use super::{
    entity::courier::{ActiveModel, Column, Entity, Model},
    pages::{self, Start},
};
use crate::prelude::*;

pub async fn find(
    connection: &impl ConnectionTrait,
    id: CourierId,
) -> Result<Option<Courier>, Error> {
    rows::first(connection, Entity::find_by_id(id.0)).await
}

/// Those of these couriers that exist, by their ids.
pub async fn find_all(
    connection: &impl ConnectionTrait,
    ids: &BTreeSet<CourierId>,
) -> Result<BTreeMap<CourierId, Courier>, Error> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    by_id(connection, of(ids)).await
}

/// Like [`find_all`], locked until the transaction ends, in the order of their ids.
pub async fn find_all_and_lock(
    transaction: &impl ConnectionTrait,
    ids: &BTreeSet<CourierId>,
) -> Result<BTreeMap<CourierId, Courier>, Error> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let query = of(ids).order_by_asc(Column::Id).lock_exclusive();
    by_id(transaction, query).await
}

fn of(ids: &BTreeSet<CourierId>) -> Select<Entity> {
    let ids = padded(ids.iter().map(|id| id.0));
    Entity::find().filter(Column::Id.is_in(ids))
}

async fn by_id(
    connection: &impl ConnectionTrait,
    query: Select<Entity>,
) -> Result<BTreeMap<CourierId, Courier>, Error> {
    let couriers: Vec<Courier> = rows::all(connection, query).await?;
    let couriers = couriers.into_iter().map(|courier| (courier.id, courier));
    Ok(couriers.collect())
}

/// Like [`find`], locked until the transaction ends.
pub async fn find_and_lock(
    transaction: &impl ConnectionTrait,
    id: CourierId,
) -> Result<Option<Courier>, Error> {
    rows::first(transaction, Entity::find_by_id(id.0).lock_exclusive()).await
}

/// The disabled couriers, the others, or all, oldest first: those after one of them, at most as many as a page has, and
/// whether more follow.
pub async fn list(
    connection: &impl ConnectionTrait,
    is_disabled: Option<bool>,
    after: Option<CourierId>,
    size: Option<u32>,
) -> Result<(Vec<Courier>, bool), Error> {
    let query = Entity::find()
        .apply_if(is_disabled, |query, is_disabled| {
            query.filter(if is_disabled {
                Column::DisabledAt.is_not_null()
            } else {
                Column::DisabledAt.is_null()
            })
        })
        .apply_if(after, |query, after| query.filter(Column::Id.gt(after.0)))
        .order_by_asc(Column::Id)
        .limit(size.map(pages::limit));
    let couriers = rows::all(connection, query).await?;
    let size = size.unwrap_or(u32::MAX);
    Ok(pages::cut(couriers, Start::Newest, size))
}

/// Enabled couriers with a display name, two at most.
pub async fn named(
    connection: &impl ConnectionTrait,
    display_name: &str,
) -> Result<Vec<Courier>, Error> {
    let query = Entity::find()
        .filter(Column::DisplayName.eq(display_name))
        .filter(Column::DisabledAt.is_null())
        .limit(2);
    rows::all(connection, query).await
}

pub async fn insert(connection: &impl ConnectionTrait, courier: &Courier) -> Result<(), Error> {
    rows::insert(connection, row(courier)).await
}

pub async fn update(connection: &impl ConnectionTrait, courier: &Courier) -> Result<(), Error> {
    rows::update(connection, row(courier)).await
}

fn row(courier: &Courier) -> ActiveModel {
    ActiveModel {
        id: Set(courier.id.0),
        display_name: Set(courier.display_name.clone()),
        telephone: Set(courier.telephone.clone()),
        created_at: Set(courier.created_at.into()),
        disabled_at: Set(courier.disabled_at.map(Into::into)),
    }
}

impl TryFrom<Model> for Courier {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            id: CourierId(row.id),
            display_name: row.display_name,
            telephone: row.telephone,
            created_at: row.created_at.try_into()?,
            disabled_at: row.disabled_at.map(TryInto::try_into).transpose()?,
        })
    }
}
