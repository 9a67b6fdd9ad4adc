//! Deliveries with responses under idempotency keys.

use domain::id::ApiClientId;

use super::*;
use crate::idempotency_keys::{Key, Request};

/// A response under the key of this number, which is another for each other number.
fn response(store_id: StoreId, number: u8) -> NewResponse {
    NewResponse {
        key: Key {
            store_id,
            api_client_id: ApiClientId(uuid::Uuid::nil()),
            hash: [number; 32],
        },
        request: Request {
            hash: [0; 32],
            delivery_id: None,
        },
        encrypted_response: vec![number],
        created_at: NOW,
    }
}

/// Like [`insert_all`], each with a response under a key of this number, if there is one.
async fn insert_all_with_keys(
    storage: &Storage,
    deliveries: &[NewDelivery],
    keys: &[Option<u8>],
) -> Vec<Result<bool, Error>> {
    let insertions = deliveries.iter().zip(keys).map(|(new, number)| {
        let response = number.map(|number| response(new.delivery.store_id, number));
        storage.insert_with_response(Arc::new(new.clone()), response)
    });
    join_all(insertions).await
}

/// The stored responses of a store's keys, in ascending order.
async fn responses(storage: &Storage, store_id: StoreId) -> Vec<u8> {
    let sql = "SELECT encrypted_response FROM idempotency_keys WHERE store_id = $1
        ORDER BY key_hash";
    let rows = rows::query(storage.reader(), sql, [store_id.0.into()]).await;
    let responses = rows.unwrap().into_iter();
    responses
        .flat_map(|row| row.try_get_by_index::<Vec<u8>>(0).unwrap())
        .collect()
}

#[tokio::test]
async fn responses_are_stored_by_the_statement_of_their_deliveries() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let store_id = StoreId::new();
    let deliveries = [(); 7].map(|()| new(store_id));
    let keys = [Some(3), None, Some(1), Some(4), None, None, Some(2)];

    let inserted = insert_all_with_keys(&storage, &deliveries, &keys).await;

    assert!(inserted.iter().all(|result| matches!(result, Ok(true))));
    assert_eq!(are_stored(&storage, &deliveries).await, [true; 7]);
    assert_eq!(transactions(&storage).await, [1, 2, 4]);
    let apart = "SELECT 1 FROM idempotency_keys
        WHERE CAST(xmin AS text) NOT IN (SELECT CAST(xmin AS text) FROM deliveries)";
    let apart = rows::query(storage.reader(), apart, []).await.unwrap();
    assert!(apart.is_empty());
    assert_eq!(responses(&storage, store_id).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_key_that_is_not_free_fails_its_delivery_alone() {
    let (_directory, sqlite) = fixture::sqlite().await;
    for storage in [Some(sqlite), fixture::postgres().await] {
        let Some(storage) = storage else {
            continue;
        };
        let store_id = StoreId::new();
        let first = [new(store_id)];
        let inserted = insert_all_with_keys(&storage, &first, &[Some(1)]).await;
        assert!(matches!(inserted[..], [Ok(true)]));
        // The second and the third have the same key.
        let deliveries = [(); 4].map(|()| new(store_id));
        let keys = [Some(1), Some(2), Some(2), Some(3)];

        let inserted = insert_all_with_keys(&storage, &deliveries, &keys).await;

        let is_inserted = |result: &Result<bool, Error>| match result {
            Ok(inserted) => *inserted,
            Err(error) => {
                assert!(error.is_unique_violation(), "{error:?}");
                false
            }
        };
        let inserted: Vec<_> = inserted.iter().map(is_inserted).collect();
        assert_eq!(inserted, [false, true, false, true]);
        assert_eq!(are_stored(&storage, &deliveries).await, inserted);
        assert_eq!(responses(&storage, store_id).await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn no_response_is_stored_if_a_definition_has_changed() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let store_id = StoreId::new();
    let mut deliveries = [(); 2].map(|()| new(store_id));
    deliveries[0].versions.price_list = Some(1);

    let inserted = insert_all_with_keys(&storage, &deliveries, &[Some(1), Some(2)]).await;

    let inserted: Vec<_> = inserted.into_iter().map(Result::unwrap).collect();
    assert_eq!(inserted, [false, true]);
    assert_eq!(responses(&storage, store_id).await, [2]);
}

/// The caller waits for it in a transaction of its own.
#[tokio::test]
async fn a_key_that_a_transaction_stores_delays_other_deliveries_little() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let store_id = StoreId::new();
    let (transaction, checkout) = storage.reader().begin().await.unwrap();
    let taken = response(store_id, 1);
    idempotency_keys::insert(&transaction, &taken)
        .await
        .unwrap();
    let deliveries = [(); 2].map(|()| new(store_id));

    let inserted = insert_all_with_keys(&storage, &deliveries, &[Some(1), None]).await;

    let [Err(error), Ok(true)] = &inserted[..] else {
        panic!("{inserted:?}");
    };
    assert!(error.is_lock_timeout(), "{error:?}");
    assert_eq!(are_stored(&storage, &deliveries).await, [false, true]);
    checkout.end(transaction, false).await.unwrap();
    assert!(responses(&storage, store_id).await.is_empty());
}
