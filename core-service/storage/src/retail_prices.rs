//! Uses of quotes: each quote is used at most once, in the transaction that creates the delivery.

use domain::{
    delivery::Delivery,
    id::{DeliveryId, StoreId},
};

use super::entity::Instant;
use crate::prelude::*;

/// Records that a delivery uses a quote, unless another one already uses it. Returns whether it was
/// recorded. Of two concurrent uses, one waits for the other transaction.
pub async fn use_once(
    transaction: &impl ConnectionTrait,
    retail_price_id: Uuid,
    delivery: &Delivery,
) -> Result<bool, Error> {
    let insert = "INSERT INTO retail_price_uses (store_id, retail_price_id, delivery_id, used_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (store_id, retail_price_id) DO NOTHING";
    let values = [
        delivery.store_id.0.into(),
        retail_price_id.into(),
        delivery.id.0.into(),
        Instant::from(delivery.created_at).into(),
    ];
    Ok(rows::execute(transaction, insert, values).await? > 0)
}

/// The delivery that used a quote.
pub async fn find_use(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    retail_price_id: Uuid,
) -> Result<Option<DeliveryId>, Error> {
    let select = "SELECT delivery_id FROM retail_price_uses
        WHERE store_id = $1 AND retail_price_id = $2";
    let key = [store_id.0.into(), retail_price_id.into()];
    let found = rows::find_value(connection, select, key).await?;
    Ok(found.map(DeliveryId))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn the_use_of_a_quote_is_that_of_the_store_and_of_the_quote() {
        let (_directory, storage) = fixture::sqlite().await;
        let (stores, quotes) = (
            [(); 2].map(|()| StoreId::new()),
            [(); 2].map(|()| Uuid::new_v4()),
        );
        let mut expected = Vec::new();
        for store in stores {
            for quote in quotes {
                let delivery = fixture::delivery(store, Timestamp::UNIX_EPOCH);
                expected.push((store, quote, delivery.id));
                let used = storage.write(move |transaction| async move {
                    use_once(&transaction, quote, &delivery).await
                });
                assert!(used.await.unwrap());
            }
        }

        for (store, quote, delivery) in expected {
            let found = find_use(storage.reader(), store, quote).await;
            assert_eq!(found.unwrap(), Some(delivery));
        }
        let unused = find_use(storage.reader(), stores[0], Uuid::new_v4()).await;
        assert_eq!(unused.unwrap(), None);
    }
}
