//! `POST /api/deliveries/assert`: would it be accepted?

use serde_json::{Value, json};

use super::{dropoff, order};
use crate::harness::{
    Platform,
    assertions::{assert_error, assert_violations, json_ld},
};

const ASSERT: &str = "/api/deliveries/assert";

on_both_databases! {
    /// "same body as create; 200 if it would be accepted […]; stores nothing": what it would be,
    /// without what only a delivery that exists has.
    async fn what_would_be_accepted_is_shown_and_not_made(platform: &Platform) {
        let client = platform.client().await;
        let order = json!({
            "dropoff": {
                "address": "48 Rue de Rivoli, 75004 Paris",
                "timeSlot": "2020-04-03 12:00-14:00",
                "comments": "Ring twice",
                "weight": 1500,
                "packages": [{ "type": "M", "quantity": 2 }],
                "metadata": { "order": "42" },
            },
        });

        let preview = json_ld(&client.post(ASSERT, order.clone()).await, 200);

        let listed = json_ld(&client.get("/api/deliveries").await, 200);
        assert_eq!(listed["hydra:member"], json!([]));
        let mut expected = client.create_delivery(order).await;
        without(&mut expected, &["@id", "id"]);
        for task in ["pickup", "dropoff"] {
            without(&mut expected[task], &["@id", "id"]);
            without(&mut expected[task]["address"], &["@id"]);
            expected[task]["createdAt"] = Value::Null;
            expected[task]["updatedAt"] = Value::Null;
        }
        assert_eq!(preview, expected);
    }

    /// "else every reason", as creating it would answer; and a slot asserted is not booked.
    async fn what_would_be_refused_is_told_every_reason(platform: &Platform) {
        let client = platform.client().await;
        let wrong = json!({
            "pickup": { "address": 5 },
            "dropoff": { "address": { "streetAddress": "x", "latLng": [91, 0] }, "weight": "heavy" },
        });

        let asserted = client.post(ASSERT, wrong.clone()).await;
        let created = client.post("/api/deliveries", wrong).await;
        assert_violations(
            &asserted,
            &["pickup.address", "dropoff.address.latLng", "dropoff.weight", "dropoff.before"],
        );
        assert_eq!(asserted.json["violations"], created.json["violations"]);

        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, ONE_PLACE)
            .await;
        let mut slot = json!({ "dropoff": dropoff() });
        slot["dropoff"]["timeSlot"] = json!("2020-04-03 12:00-14:00");
        for _ in 0..2 {
            json_ld(&client.post(ASSERT, slot.clone()).await, 200);
        }
        client.create_delivery(slot.clone()).await;
        assert_violations(&client.post(ASSERT, slot).await, &["dropoff.timeSlot"]);
    }

    async fn asserting_needs_the_scope_that_creating_needs(platform: &Platform) {
        let tasks_alone = platform.client_of(&platform.demo_client, &["tasks"]).await;

        assert_error(&tasks_alone.post(ASSERT, order()).await, 403);
        assert_error(&platform.stranger().post(ASSERT, order()).await, 401);
        assert_error(&platform.client().await.get(ASSERT).await, 405);
    }
}

const ONE_PLACE: &str = r#"
    name = "Tour"
    opening_hours = ["Mo-Su 12:00-14:00"]
    interval = "2 days"
    capacity = 1
"#;

fn without(resource: &mut Value, members: &[&str]) {
    let object = resource.as_object_mut().unwrap();
    for member in members {
        assert!(object.remove(*member).is_some(), "no {member}");
    }
}
