use std::sync::Arc;

use domain::id::StoreId;
use futures_util::{FutureExt as _, future::join_all};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::QUEUE_CAPACITY;
use crate::{
    Error, Storage, deliveries,
    delivery_insertion::{self, NewDelivery},
    fixture::{self, new_delivery},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn new(store_id: StoreId) -> NewDelivery {
    new_delivery(fixture::delivery(store_id, NOW))
}

/// Inserts deliveries that arrive before the first statement begins.
async fn insert(storage: &Storage, deliveries: &[NewDelivery]) -> Vec<Result<bool, Error>> {
    let insertions = deliveries.iter().cloned();
    join_all(insertions.map(|new| storage.insert_delivery(new))).await
}

/// How many deliveries each transaction has inserted, in ascending order.
async fn transactions(storage: &Storage) -> Vec<i64> {
    let sql = "SELECT count(*) FROM deliveries GROUP BY xmin ORDER BY 1";
    let statement = Statement::from_string(DbBackend::Postgres, sql);
    let rows = storage.reader().query_all_raw(statement).await.unwrap();
    rows.iter()
        .map(|row| row.try_get_by_index(0).unwrap())
        .collect()
}

/// Whether each delivery is stored, as a whole.
async fn are_stored(storage: &Arc<Storage>, deliveries: &[NewDelivery]) -> Vec<bool> {
    let mut are_stored = Vec::new();
    for NewDelivery { delivery, .. } in deliveries {
        let found = deliveries::find(storage.reader(), delivery.store_id, delivery.id);
        let found = found.await.unwrap();
        assert!(found.is_none() || found.as_ref() == Some(delivery));
        are_stored.push(found.is_some());
    }
    are_stored
}

#[tokio::test]
async fn deliveries_that_arrive_together_share_statements() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let stores = [(); 7].map(|()| StoreId::new());
    let deliveries: Vec<_> = stores.iter().cycle().take(39).copied().map(new).collect();

    let inserted = insert(&storage, &deliveries).await;

    assert!(inserted.iter().all(|result| matches!(result, Ok(true))));
    assert_eq!(are_stored(&storage, &deliveries).await, [true; 39]);
    // The largest batch sizes first, of what is left: 16, 16, 4, 2 and 1.
    assert_eq!(transactions(&storage).await, [1, 2, 4, 16, 16]);
}

#[tokio::test]
async fn a_changed_definition_fails_its_delivery_alone() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let mut deliveries = [(); 4].map(|()| new(StoreId::new()));
    deliveries[1].versions.price_list = Some(1);

    let inserted = insert(&storage, &deliveries).await;

    let expected = [true, false, true, true];
    assert_eq!(
        inserted.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(are_stored(&storage, &deliveries).await, expected);
}

#[tokio::test]
async fn a_value_that_the_database_rejects_fails_its_delivery_alone() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let mut deliveries = [(); 4].map(|()| new(StoreId::new()));
    deliveries[2].delivery.pickup.plan.comments = "\0".to_owned();

    let inserted = insert(&storage, &deliveries).await;

    let expected = [true, true, false, true];
    assert_eq!(
        inserted.iter().map(Result::is_ok).collect::<Vec<_>>(),
        expected
    );
    assert!(matches!(inserted[2], Err(Error::Database(_))));
    assert_eq!(are_stored(&storage, &deliveries).await, expected);
}

/// Otherwise a transaction that inserts the same reference would delay the deliveries of others.
#[tokio::test]
async fn a_delivery_with_an_external_reference_shares_no_statement() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let mut deliveries = [(); 4].map(|()| new(StoreId::new()));
    for new in &mut deliveries {
        new.delivery.external_reference = Some("42".to_owned());
    }

    let inserted = insert(&storage, &deliveries).await;

    assert!(inserted.iter().all(|result| matches!(result, Ok(true))));
    assert_eq!(transactions(&storage).await, [1; 4]);
}

#[tokio::test]
async fn a_delivery_whose_caller_has_gone_is_not_inserted_later() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let deliveries = [(); 4].map(|()| new(StoreId::new()));
    for abandoned in &deliveries[..3] {
        let insertion = storage.insert_delivery(abandoned.clone());
        assert!(insertion.now_or_never().is_none());
    }

    let inserted = insert(&storage, &deliveries[3..]).await;

    assert!(matches!(inserted[..], [Ok(true)]));
    let expected = [false, false, false, true];
    assert_eq!(are_stored(&storage, &deliveries).await, expected);
}

#[tokio::test]
async fn the_end_of_all_connections_fails_every_delivery() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    storage.reader().clone().close().await;
    let deliveries = [(); 3].map(|()| new(StoreId::new()));

    let inserted = insert(&storage, &deliveries).await;

    assert_eq!(inserted.len(), 3);
    for result in inserted {
        assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    }
}

#[tokio::test]
async fn as_many_insertions_wait_as_the_queue_holds() {
    let Some(storage) = fixture::postgres().await else {
        return;
    };
    let new = new(StoreId::new());
    let mut waiting = Vec::new();
    for _ in 0..QUEUE_CAPACITY {
        let mut insertion = Box::pin(storage.insert_delivery(new.clone()));
        assert!(insertion.as_mut().now_or_never().is_none());
        waiting.push(insertion);
    }
    let one_more = || storage.insert_delivery(new.clone()).now_or_never();
    assert!(matches!(one_more(), Some(Err(Error::Overloaded))));

    waiting.pop();

    assert!(one_more().is_none());
}

/// Such as one whose connection is lost.
#[tokio::test]
async fn statements_that_hang_do_not_keep_others_from_running() {
    let Some(url) = fixture::postgres_url() else {
        return;
    };
    let storage = Storage::connect(&url, 20).await.unwrap();
    let (store_id, other) = (StoreId::new(), StoreId::new());
    // Two statements wait for this transaction, which has inserted the same ids.
    let hanging = [(); 2].map(|()| new(store_id));
    let (transaction, checkout) = storage.reader().begin().await.unwrap();
    for new in &hanging {
        assert!(delivery_insertion::insert(&transaction, new).await.unwrap());
    }
    let mut waiting = Vec::new();
    for new in &hanging {
        let mut insertion = Box::pin(storage.insert_delivery(new.clone()));
        assert!(insertion.as_mut().now_or_never().is_none());
        // Its statement begins before the next delivery arrives.
        tokio::task::yield_now().await;
        waiting.push(insertion);
    }

    let inserted = storage.insert_delivery(new(other)).await;

    assert!(matches!(inserted, Ok(true)), "{inserted:?}");
    checkout.end(transaction, false).await.unwrap();
    for insertion in waiting {
        assert!(matches!(insertion.await, Ok(true)));
    }
}
