//! Uses of quotes: each quote is used at most once, in the transaction that creates the delivery.

use domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId},
};

use super::entity::retail_price_use::{ActiveModel, Column, Entity};
use crate::prelude::*;

/// Records that a delivery uses a quote, unless another one already uses it. Returns whether it was
/// recorded. Of two concurrent uses, one waits for the other transaction.
pub async fn use_once(
    transaction: &impl ConnectionTrait,
    retail_price_id: Uuid,
    delivery: &Delivery,
) -> Result<bool, Error> {
    let row = ActiveModel {
        store_id: Set(delivery.store_id.0),
        retail_price_id: Set(retail_price_id),
        delivery_id: Set(delivery.id.0),
        used_at: Set(delivery.created_at.into()),
    };
    let key = [Column::StoreId, Column::RetailPriceId];
    let rows = Entity::insert(row)
        .on_conflict(OnConflict::columns(key).do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(rows > 0)
}

/// The delivery that used a quote.
pub async fn find_use(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    retail_price_id: Uuid,
) -> Result<Option<DeliveryId>, Error> {
    let row = Entity::find_by_id((store_id.0, retail_price_id))
        .one(connection)
        .await?;
    Ok(row.map(|row| DeliveryId(row.delivery_id)))
}
