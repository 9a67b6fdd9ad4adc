//! `POST /api/deliveries/assert`: validates a draft without creating it.

use serde_json::{Value, json};

use super::{draft, dropoff};
use crate::harness::{
    Platform,
    assertions::{assert_error, assert_violations, json_ld},
    definitions::TIME_SLOT,
};

const ASSERT: &str = "/api/deliveries/assert";

on_both_databases! {
    /// "same body as create; 200 if it would be accepted […]; stores nothing": the delivery as it
    /// would be created, without ids and creation times.
    async fn an_acceptable_draft_is_returned_as_a_preview_and_not_created(platform: &Platform) {
        let client = platform.client().await;
        let draft = json!({
            "dropoff": {
                "address": "48 Rue de Rivoli, 75004 Paris",
                "timeSlot": "2020-04-03 12:00-14:00",
                "comments": "Ring twice",
                "weight": 1500,
                "packages": [{ "type": "M", "quantity": 2 }],
                "metadata": { "order": "42" },
            },
        });

        let preview = json_ld(&client.post(ASSERT, draft.clone()).await, 200);

        let listed = json_ld(&client.get("/api/deliveries").await, 200);
        assert_eq!(listed["hydra:member"], json!([]));
        let mut expected = client.create_delivery(draft).await;
        remove(&mut expected, &["@id", "id"]);
        expected["trackingUrl"] = Value::Null;
        for task in ["pickup", "dropoff"] {
            remove(&mut expected[task], &["@id", "id"]);
            remove(&mut expected[task]["address"], &["@id"]);
            expected[task]["createdAt"] = Value::Null;
            expected[task]["updatedAt"] = Value::Null;
        }
        assert_eq!(preview, expected);
    }

    /// "else every reason", the same as for create; and an asserted slot is not booked.
    async fn an_unacceptable_draft_is_rejected_with_every_violation(platform: &Platform) {
        let client = platform.client().await;
        let invalid = json!({
            "pickup": { "address": 5 },
            "dropoff": { "address": { "streetAddress": "x", "latLng": [91, 0] }, "weight": "heavy" },
        });

        let asserted = client.post(ASSERT, invalid.clone()).await;
        let created = client.post("/api/deliveries", invalid).await;
        assert_violations(
            &asserted,
            &["pickup.address", "dropoff.address.latLng", "dropoff.weight", "dropoff.before"],
        );
        assert_eq!(asserted.json["violations"], created.json["violations"]);

        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, &format!("{TIME_SLOT}capacity = 1"))
            .await;
        let mut slot = json!({ "dropoff": dropoff() });
        slot["dropoff"]["timeSlot"] = json!("2020-04-03 12:00-14:00");
        for _ in 0..2 {
            json_ld(&client.post(ASSERT, slot.clone()).await, 200);
        }
        client.create_delivery(slot.clone()).await;
        assert_violations(&client.post(ASSERT, slot).await, &["dropoff.timeSlot"]);
    }

    async fn asserting_requires_the_scope_of_creating(platform: &Platform) {
        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;

        assert_error(&tasks_only.post(ASSERT, draft()).await, 403);
        assert_error(&platform.anonymous_client().post(ASSERT, draft()).await, 401);
        assert_error(&platform.client().await.get(ASSERT).await, 405);
    }
}

fn remove(resource: &mut Value, members: &[&str]) {
    let object = resource.as_object_mut().unwrap();
    for member in members {
        assert!(object.remove(*member).is_some(), "{member} is missing");
    }
}
