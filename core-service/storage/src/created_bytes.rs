//! How many bytes of deliveries each store created per hour. A store has one row for each hour of
//! the day; the same hour of the next day overwrites it.

use domain::id::StoreId;
use jiff::SignedDuration;
use sea_orm::sea_query::ExprTrait as _;

use super::entity::{
    created_bytes::{ActiveModel, Column, Entity},
    instant::Instant,
};
use crate::prelude::*;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Adds to a store's bytes of the current hour. Call late in a transaction: it locks the hour's
/// row.
pub async fn add(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    bytes: i64,
    now: Timestamp,
) -> Result<(), Error> {
    let hours = now.as_second().div_euclid(HOUR.as_secs());
    let row = ActiveModel {
        store_id: Set(store_id.0),
        hour_of_day: Set(hours.rem_euclid(24)),
        hour: Set(Timestamp::from_second(hours * HOUR.as_secs())
            .unwrap_or(now)
            .into()),
        bytes: Set(bytes),
    };
    let (stored, new) = (
        |column| Expr::col((Entity, column)),
        |column| Expr::col(("excluded", column)),
    );
    let sum: SimpleExpr = CaseStatement::new()
        .case(
            stored(Column::Hour).eq(new(Column::Hour)),
            stored(Column::Bytes).add(new(Column::Bytes)),
        )
        .finally(new(Column::Bytes))
        .into();
    Entity::insert(row)
        .on_conflict(
            OnConflict::columns([Column::StoreId, Column::HourOfDay])
                .value(Column::Bytes, sum)
                .value(Column::Hour, new(Column::Hour))
                .to_owned(),
        )
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// A store's bytes in each hour that began after an instant, oldest first.
pub async fn hours_after(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    after: Timestamp,
) -> Result<Vec<(Timestamp, i64)>, Error> {
    let rows = Entity::find()
        .filter(Column::StoreId.eq(store_id.0))
        .filter(Column::Hour.gt(Instant::from(after)))
        .order_by_asc(Column::Hour)
        .all(connection)
        .await?;
    rows.into_iter()
        .map(|row| Ok((row.hour.try_into()?, row.bytes)))
        .collect()
}
