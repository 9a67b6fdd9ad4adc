//! `capacity`: deliveries per slot.

use futures_util::future::join_all;
use serde_json::json;

use super::{LUNCH_AND_AFTERNOON, definition, intervals, values};
use crate::harness::{ApiClient, Platform, Response};

on_both_databases! {
    /// "`capacity` […] deliveries per slot": also for concurrent requests; a full slot is no
    /// longer offered, and its error names the next available one.
    async fn a_slot_accepts_as_many_deliveries_as_its_capacity(platform: &Platform) {
        let definition = definition(LUNCH_AND_AFTERNOON, "2 days", "capacity = 10");
        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, &definition)
            .await;
        let client = platform.client().await;

        let (created, rejected) = create_concurrently([&client, &client]).await;

        assert_eq!((created.len(), rejected.len()), (10, 54));
        for response in rejected {
            assert_eq!(response.status, 400, "{}", response.json);
            assert_eq!(
                (
                    &response.json["violations"][0]["propertyPath"],
                    &response.json["violations"][0]["code"],
                    &response.json["violations"][0]["message"],
                ),
                (
                    &json!("dropoff.timeSlot"),
                    &json!("time_slot_refused"),
                    &json!("the slot 2020-04-02 12:00-14:00 can't be booked: full, its capacity of 10 is booked; the next available slot is 2020-04-02 14:00-17:00"),
                )
            );
        }
        assert_eq!(
            values(&client).await,
            intervals(&[
                ("2020-04-02", "T12:00:00Z/T15:00:00Z"),
                ("2020-04-03", "T10:00:00Z/T12:00:00Z"),
                ("2020-04-03", "T12:00:00Z/T15:00:00Z"),
            ])
        );
    }
}

/// The same on two cores; capacity released on one can be booked on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_book_a_slot_no_more_than_its_capacity() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let definition = definition(LUNCH_AND_AFTERNOON, "2 days", "capacity = 10");
    let operator = platforms[0].operator().await;
    operator
        .apply_time_slot(&platforms[0].store, &definition)
        .await;
    let (client, other) = (platforms[0].client().await, platforms[1].client().await);

    let (created, rejected) = create_concurrently([&client, &other]).await;
    assert_eq!((created.len(), rejected.len()), (10, 54));

    let cancelled = &created[..3];
    join_all(cancelled.iter().map(|response| {
        let iri = response.json["@id"].as_str().unwrap().to_owned();
        let client = &client;
        async move { assert_eq!(client.delete(&iri).await.status, 204) }
    }))
    .await;
    let (created, rejected) = create_concurrently([&other, &client]).await;
    assert_eq!((created.len(), rejected.len()), (3, 61));

    Platform::stop_both(platforms).await;
}

/// Sends 64 concurrent drafts for one slot, alternating between the clients; returns the created
/// and the rejected.
async fn create_concurrently(clients: [&ApiClient; 2]) -> (Vec<Response>, Vec<Response>) {
    let draft = json!({
        "dropoff": {"address": "48 Rue de Rivoli, Paris", "timeSlot": "2020-04-02 12:00-14:00"}
    });
    let drafts = clients
        .into_iter()
        .cycle()
        .take(64)
        .map(|client| client.post("/api/deliveries", draft.clone()));
    join_all(drafts)
        .await
        .into_iter()
        .partition(|response| response.status == 201)
}
