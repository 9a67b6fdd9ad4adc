//! `capacity`: deliveries per slot.

use futures_util::future::join_all;
use serde_json::json;

use super::{LUNCH_AND_AFTERNOON, intervals, slots, values};
use crate::harness::Platform;

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
        let order = json!({
            "dropoff": {"address": "48 Rue de Rivoli, Paris", "timeSlot": "2020-04-02 12:00-14:00"}
        });

        let answers = join_all((0..64).map(|_| client.post("/api/deliveries", order.clone()))).await;

        let (taken, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status == 201);
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
