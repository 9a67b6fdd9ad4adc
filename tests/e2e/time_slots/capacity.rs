//! `capacity`: deliveries per slot.

use futures_util::future::join_all;
use serde_json::json;

use super::{LUNCH_AND_AFTERNOON, intervals, slots, values};
use crate::harness::{Answer, ApiClient, Platform, Twin};

on_both_databases! {
    /// "`capacity` […] deliveries per slot": it holds however many ask at once, a full slot is
    /// offered no more, and who asks for it is told which would do.
    async fn a_slot_takes_as_many_deliveries_as_it_has_places(platform: &Platform) {
        let definition = slots(LUNCH_AND_AFTERNOON, "2 days", "capacity = 10");
        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, &definition)
            .await;
        let client = platform.client().await;

        let (taken, refused) = rush([&client, &client]).await;

        assert_eq!((taken.len(), refused.len()), (10, 54));
        for answer in refused {
            assert_eq!(answer.status, 400, "{}", answer.json);
            assert_eq!(
                (
                    &answer.json["violations"][0]["propertyPath"],
                    &answer.json["violations"][0]["code"],
                    &answer.json["violations"][0]["message"],
                ),
                (
                    &json!("dropoff.timeSlot"),
                    &json!("time_slot_refused"),
                    &json!("the slot 2020-04-02 12:00-14:00 can't be booked: full, all places are taken (10); the next that can is 2020-04-02 14:00-17:00"),
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

/// The same, over two cores; and what one gives back, the other may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_give_a_slot_no_more_than_its_places() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let definition = slots(LUNCH_AND_AFTERNOON, "2 days", "capacity = 10");
    let operator = twins[0].operator().await;
    operator.apply_time_slot(&twins[0].store, &definition).await;
    let (client, other) = (twins[0].client().await, twins[1].client().await);

    let (taken, refused) = rush([&client, &other]).await;
    assert_eq!((taken.len(), refused.len()), (10, 54));

    let cancelled = &taken[..3];
    join_all(cancelled.iter().map(|answer| {
        let iri = answer.json["@id"].as_str().unwrap().to_owned();
        let client = &client;
        async move { assert_eq!(client.delete(&iri).await.status, 204) }
    }))
    .await;
    let (taken, refused) = rush([&other, &client]).await;
    assert_eq!((taken.len(), refused.len()), (3, 61));

    for twin in twins {
        twin.stop().await;
    }
}

/// 64 orders of one slot at once, by two programs in turn: which got a place, and which did not.
async fn rush(clients: [&ApiClient; 2]) -> (Vec<Answer>, Vec<Answer>) {
    let order = json!({
        "dropoff": {"address": "48 Rue de Rivoli, Paris", "timeSlot": "2020-04-02 12:00-14:00"}
    });
    let orders = clients
        .into_iter()
        .cycle()
        .take(64)
        .map(|client| client.post("/api/deliveries", order.clone()));
    join_all(orders)
        .await
        .into_iter()
        .partition(|answer| answer.status == 201)
}
