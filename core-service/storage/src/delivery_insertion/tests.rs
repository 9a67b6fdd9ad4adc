mod responses;

use domain::{
    id::{StoreId, TimeSlotId},
    zone::Zones,
};
use futures_util::{FutureExt as _, future::join_all};

use super::*;
use crate::{
    Storage, deliveries,
    fixture::{self, new_delivery},
    price_lists::{self, StoredPriceList},
    time_slots,
    zones::{self, StoredZones},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn new(store_id: StoreId) -> NewDelivery {
    new_delivery(fixture::delivery(store_id, NOW))
}

/// Inserts deliveries that arrive before the first statement begins.
async fn insert_all(storage: &Storage, deliveries: &[NewDelivery]) -> Vec<Result<bool, Error>> {
    let insertions = deliveries.iter().cloned();
    join_all(insertions.map(|new| storage.insert_delivery(new))).await
}

/// How many deliveries each transaction has inserted, in ascending order.
async fn transactions(storage: &Storage) -> Vec<i64> {
    let sql = "SELECT count(*) FROM deliveries GROUP BY xmin ORDER BY 1";
    let rows = rows::query(storage.reader(), sql, []).await.unwrap();
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

    let inserted = insert_all(&storage, &deliveries).await;

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

    let inserted = insert_all(&storage, &deliveries).await;

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
    deliveries[2].delivery.pickup.details.comments = "\0".to_owned();

    let inserted = insert_all(&storage, &deliveries).await;

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

    let inserted = insert_all(&storage, &deliveries).await;

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

    let inserted = insert_all(&storage, &deliveries[3..]).await;

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

    let inserted = insert_all(&storage, &deliveries).await;

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

    let one_more = storage.insert_delivery(new).now_or_never();

    assert!(matches!(one_more, Some(Err(Error::Overloaded))));
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
        assert!(insert(&transaction, new, None).await.unwrap());
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

/// Whether a delivery planned with these definitions is inserted.
async fn is_inserted(storage: &Storage, store_id: StoreId, versions: &DefinitionVersions) -> bool {
    let delivery = fixture::delivery(store_id, NOW);
    let inserted = storage.insert_delivery(NewDelivery {
        delivery: delivery.clone(),
        versions: versions.clone(),
    });
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
        let apply = storage.write(move |transaction| async move {
            price_lists::insert(&transaction, &price_list).await
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
        let apply = storage.write(move |transaction| async move {
            time_slots::save(&transaction, &changed).await
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
        let apply = storage.write(move |transaction| async move {
            let stored = StoredZones {
                version,
                zones: Zones::default(),
                created_at: NOW,
            };
            zones::insert(&transaction, &stored).await
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
