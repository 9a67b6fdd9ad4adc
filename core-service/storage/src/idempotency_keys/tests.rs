//! Tests of idempotency keys, against a real database.

use std::sync::Arc;

use jiff::SignedDuration;

use super::*;
use crate::{Storage, fixture};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn key(number: u8) -> Key {
    Key {
        store_id: StoreId(uuid::Uuid::nil()),
        api_client_id: ApiClientId(uuid::Uuid::nil()),
        hash: [number; 32],
    }
}

fn of_no_delivery(hash: [u8; 32]) -> Request {
    Request {
        hash,
        delivery_id: None,
    }
}

/// Acquires a key at an instant and stores a response under it.
async fn request(
    storage: &Arc<Storage>,
    (key, body): (Key, u8),
    now: Timestamp,
    cutoff: Timestamp,
) -> Result<Acquisition, Error> {
    storage
        .write(move |transaction| async move {
            let acquisition =
                acquire(&transaction, key, of_no_delivery([body; 32]), now, cutoff).await?;
            if acquisition == Acquisition::Acquired {
                store_response(&transaction, key, vec![body]).await?;
            }
            Ok(acquisition)
        })
        .await
}

fn stored(body: u8) -> Acquisition {
    Acquisition::Stored(StoredResponse {
        request_hash: vec![body; 32],
        encrypted_response: vec![body],
    })
}

#[tokio::test]
async fn the_first_request_acquires_a_key_until_it_expires() {
    let (_directory, storage) = fixture::sqlite().await;
    let second = SignedDuration::from_secs(1);
    let past = NOW - second;

    let first = request(&storage, (key(1), 1), NOW, past).await.unwrap();
    let again = request(&storage, (key(1), 2), NOW, past).await.unwrap();
    let other = request(&storage, (key(2), 3), NOW, past).await.unwrap();
    let expired = request(&storage, (key(1), 4), NOW + second, NOW)
        .await
        .unwrap();
    let after = request(&storage, (key(1), 5), NOW + second, NOW)
        .await
        .unwrap();

    assert_eq!(
        (first, again, other),
        (Acquisition::Acquired, stored(1), Acquisition::Acquired)
    );
    assert_eq!((expired, after), (Acquisition::Acquired, stored(4)));
}

/// The hash is of the operation and the client's text, which others may choose too.
#[tokio::test]
async fn equal_keys_of_other_clients_and_stores_are_other_keys() {
    let (_directory, storage) = fixture::sqlite().await;
    let own = key(1);
    let of_other_client = Key {
        api_client_id: ApiClientId::new(),
        ..own
    };
    let of_other_store = Key {
        store_id: StoreId::new(),
        ..own
    };
    let past = NOW - SignedDuration::from_secs(1);
    let keys = [(own, 1), (of_other_client, 2), (of_other_store, 3)];

    for key in keys {
        let first = request(&storage, key, NOW, past).await.unwrap();
        assert_eq!(first, Acquisition::Acquired);
    }

    for (key, body) in keys {
        let again = request(&storage, (key, body), NOW, past).await.unwrap();
        assert_eq!(again, stored(body));
    }
}

#[tokio::test]
async fn the_oldest_keys_are_deleted_first_and_up_to_the_limit() {
    let (_directory, storage) = fixture::sqlite().await;
    let at = |second: u8| NOW + SignedDuration::from_secs(second.into());
    for number in (0..5).rev() {
        let result = request(&storage, (key(number), number), at(number), NOW).await;
        result.unwrap();
    }
    let delete = |cutoff, limit| {
        storage.write(move |transaction| async move {
            delete_expired(&transaction, cutoff, limit).await
        })
    };

    let mut deleted = Vec::new();
    for (cutoff, limit) in [(at(3), 2), (at(3), 200), (at(3), 200), (at(4), 200)] {
        deleted.push(delete(cutoff, limit).await.unwrap());
    }

    assert_eq!(deleted, [2, 2, 0, 1]);
}

#[tokio::test]
async fn responses_of_earlier_versions_are_listed_by_store_and_age_in_the_order_of_keys() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        assert_unnamed_responses_are_listed(&storage).await;
    }
}

async fn assert_unnamed_responses_are_listed(storage: &Arc<Storage>) {
    let second = SignedDuration::from_secs(1);
    let client = ApiClientId(uuid::Uuid::max());
    let of_other_client = |number| Key {
        api_client_id: client,
        ..key(number)
    };
    let of_other_store = Key {
        store_id: StoreId(uuid::Uuid::max()),
        ..key(9)
    };
    for (key, now) in [
        (key(3), NOW),
        (key(2), NOW + second),
        (of_other_client(1), NOW),
        (key(4), NOW - second),
        (of_other_store, NOW),
    ] {
        let result = request(storage, (key, key.hash[0]), now, NOW - second * 2).await;
        result.unwrap();
    }
    fixture::execute(storage, "UPDATE idempotency_keys SET delivery_id = NULL").await;
    let named = request(storage, (key(8), 8), NOW, NOW - second * 2).await;
    named.unwrap();

    for limit in [1, 2, 9] {
        let mut listed = Vec::new();
        loop {
            let after = listed.last().map(|(key, _)| *key);
            let page = list(
                storage.reader(),
                key(0).store_id,
                Listed::Unnamed(NOW),
                after,
                limit,
            );
            let page = page.await.unwrap();
            assert!(page.len() as u64 <= limit);
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        let expected = [key(2), key(3), of_other_client(1)];
        assert_eq!(listed, expected.map(|key| (key, vec![key.hash[0]])));
    }
}

#[tokio::test]
async fn responses_are_listed_by_delivery() {
    let (_directory, storages) = fixture::storages().await;
    for storage in storages {
        let ids = [(); 2].map(|()| DeliveryId::new());
        for (number, id) in [(1, ids[0]), (2, ids[1]), (3, ids[0])] {
            let acquired = storage.write(move |transaction| async move {
                let request = Request {
                    hash: [0; 32],
                    delivery_id: Some(id),
                };
                acquire(&transaction, key(number), request, NOW, Timestamp::MIN).await
            });
            acquired.await.unwrap();
        }

        let listed = Listed::OfDelivery(ids[0]);
        let found = list(storage.reader(), key(0).store_id, listed, None, 9).await;

        let expected = [1, 3].map(|number| (key(number), Vec::new()));
        assert_eq!(found.unwrap(), expected);
    }
}

#[tokio::test]
async fn prefixes_of_all_responses_are_listed_in_the_order_of_keys_on_sqlite() {
    let (_directory, storage) = fixture::sqlite().await;
    assert_prefixes_are_listed(&storage).await;
}

#[tokio::test]
async fn prefixes_of_all_responses_are_listed_in_the_order_of_keys_on_postgres() {
    if let Some(storage) = fixture::postgres().await {
        assert_prefixes_are_listed(&storage).await;
    }
}

async fn assert_prefixes_are_listed(storage: &Arc<Storage>) {
    let last = uuid::Uuid::max();
    let of_other_client = Key {
        api_client_id: ApiClientId(last),
        ..key(1)
    };
    let of_other_store = Key {
        store_id: StoreId(last),
        ..key(0)
    };
    let keys = [key(2), key(3), of_other_client, of_other_store];
    for key in keys.into_iter().rev() {
        let response = vec![key.hash[0], 7, 8];
        let write = storage.write(move |transaction| async move {
            acquire(
                &transaction,
                key,
                of_no_delivery([0; 32]),
                NOW,
                Timestamp::MIN,
            )
            .await?;
            store_response(&transaction, key, response).await
        });
        write.await.unwrap();
    }

    for limit in [1, 3, 9] {
        let mut listed = Vec::new();
        loop {
            let after = listed.last().map(|(key, _)| *key);
            let page = list_prefixes(storage.reader(), after, 2, limit)
                .await
                .unwrap();
            assert!(page.len() as u64 <= limit);
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        assert_eq!(listed, keys.map(|key| (key, vec![key.hash[0], 7])));
    }
}
