//! `capacity`: deliveries per slot.

use futures_util::future::join_all;
use proto::{RescheduleTaskRequest, iri};
use serde_json::{Value, json};
use tonic::Code;

use super::{LUNCH_AND_AFTERNOON, definition, intervals, values};
use crate::{
    harness::{ApiClient, Platform, Response, iri},
    lifecycle::Dispatch,
};

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
                    &json!("the slot 2020-04-02 12:00-14:00 is not offered: full, its capacity of 10 is booked; the next available slot is 2020-04-02 14:00-17:00"),
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

on_both_databases! {
    /// "Cancelling releases the time slot's place; rescheduling into a slot takes one, or is refused `slot_full`."
    async fn a_rescheduled_dropoff_takes_a_place_in_its_slot_or_is_refused(platform: &Platform) {
        let slots = definition(LUNCH_AND_AFTERNOON, "2 days", "capacity = 1");
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, &slots).await;
        let (client, dispatch) = (platform.client().await, Dispatch::authorized(platform).await);
        let create = async |slot: &str| {
            let dropoff = json!({ "address": "48 Rue de Rivoli, Paris", "timeSlot": slot });
            client.post("/api/deliveries", json!({ "dropoff": dropoff })).await
        };
        let (lunch, afternoon) = ("2020-04-02 12:00-14:00", "2020-04-02 14:00-17:00");
        let move_to = async |delivery: &Value, slot: &str| {
            let request = RescheduleTaskRequest {
                name: iri::name(iri(&delivery["dropoff"])).to_owned(),
                both: true,
                time_slot: Some(slot.to_owned()),
                ..Default::default()
            };
            let moved = dispatch.reschedule(request).await;
            moved.map(|_| ()).map_err(|refused| (refused.code(), refused.message().to_owned()))
        };
        let full = Err((
            Code::FailedPrecondition,
            "the time slot of the dropoff is fully booked".to_owned(),
        ));

        let first = create(lunch).await.expect(201);
        client.delete(iri(&first)).await.expect(204);
        let second = create(lunch).await.expect(201);
        assert_eq!(move_to(&first, lunch).await, full, "its place was taken");
        assert_eq!(move_to(&first, afternoon).await, Ok(()));
        assert_eq!(create(afternoon).await.status, 400, "its place is taken");
        assert_eq!(move_to(&second, afternoon).await, full);
        assert_eq!(move_to(&first, "2020-04-02 15:00-16:00").await, Ok(()));
        assert_eq!(move_to(&second, afternoon).await, full, "it moved within its slot");
        assert_eq!(move_to(&first, "2020-04-03 12:00-14:00").await, Ok(()));
        assert_eq!(move_to(&second, afternoon).await, Ok(()));
        create(lunch).await.expect(201);
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
