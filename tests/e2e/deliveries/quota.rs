//! The quotas of deliveries, and of their bytes, that a store creates in 24 hours.

use jiff::SignedDuration;
use serde_json::json;

use crate::harness::{Database, Platform, draft, iri};

async fn assert_quota(database: Database) {
    let platform = Platform::start_with(database, |settings| {
        settings.deliveries.deliveries_per_day = Some(2);
    })
    .await;
    let shop = platform.client().await;
    let other = platform.new_store_client().await;
    let post = async || shop.post("/api/deliveries", draft()).await;
    let first = post().await.expect(201);
    platform.advance(SignedDuration::from_mins(30));
    // Cancelled ones count.
    assert_eq!(shop.delete(iri(&first)).await.status, 204);
    post().await.expect(201);

    let rejected = post().await;

    assert_eq!(rejected.status, 429, "{rejected:?}");
    for (member, expected) in [
        ("code", json!("too_many_deliveries")),
        (
            "detail",
            json!("the store has created 2 deliveries in 24 hours, which is its quota"),
        ),
        ("retryable", json!(true)),
    ] {
        assert_eq!(rejected.json[member], expected, "{member}");
    }
    assert_eq!(rejected.header("retry-after"), "84600");
    other.post("/api/deliveries", draft()).await.expect(201);
    platform.advance(SignedDuration::from_mins(23 * 60 + 30));
    platform
        .client()
        .await
        .post("/api/deliveries", draft())
        .await
        .expect(201);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_creates_as_many_deliveries_in_24_hours_as_its_quota() {
    for database in Database::each() {
        assert_quota(database).await;
    }
}

async fn assert_byte_quota(database: Database) {
    let platform = Platform::start_with(database, |settings| {
        settings.deliveries.delivery_bytes_per_day = Some(10_000);
    })
    .await;
    let shop = platform.client().await;
    let mut created = 0;
    let rejected = loop {
        assert!(created < 100, "no quota");
        let response = shop.post("/api/deliveries", draft()).await;
        if response.status != 201 {
            break response;
        }
        created += 1;
    };
    assert_eq!(rejected.status, 429, "{rejected:?}");
    for (member, expected) in [
        ("code", json!("too_many_deliveries")),
        (
            "detail",
            json!(
                "the store has created deliveries of 10000 bytes in 24 hours, which is its quota"
            ),
        ),
        ("retryable", json!(true)),
    ] {
        assert_eq!(rejected.json[member], expected, "{member}");
    }
    assert_eq!(rejected.header("retry-after"), "86400");

    // With a key, the response is stored too.
    let other = platform.new_store_client().await;
    let mut created_with_keys = 0_usize;
    while created_with_keys < 100 {
        let key = format!("key-{created_with_keys}");
        let draft = draft();
        let response = other.post_with_key("/api/deliveries", &key, &draft).await;
        if response.status != 201 {
            break;
        }
        created_with_keys += 1;
    }
    assert!(created > 4, "{created}");
    // The deliveries of this store are not exactly as large.
    assert!(
        created_with_keys.abs_diff(created / 2) <= 1,
        "{created_with_keys} of {created}"
    );

    platform.advance(SignedDuration::from_hours(24));
    let shop = platform.client().await;
    shop.post("/api/deliveries", draft()).await.expect(201);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_creates_as_many_bytes_of_deliveries_in_24_hours_as_its_quota() {
    for database in Database::each() {
        assert_byte_quota(database).await;
    }
}
