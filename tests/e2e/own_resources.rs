//! Resources of an API client itself: `GET /api/me`, its store, time slots and webhooks.

use serde_json::{Value, json};

use crate::harness::{
    Mismatches, Platform, UNKNOWN_ID,
    assertions::{assert_error, json_ld},
    definitions::TIME_SLOT,
    short_draft as draft,
};

on_both_databases! {
    /// "`@context` `/api/contexts/ApiApp`, `@type` `http://schema.org/SoftwareApplication`, `@id`
    /// `/api/api_apps/<id>`, `name`, `store` IRI, `shop` null"; any scope.
    async fn a_client_reads_its_own_description(platform: &Platform) {
        let client = platform.client_for(&platform.demo_client, &["tasks"]).await;
        let operator = platform.client_for(&platform.operator_client, &["admin"]).await;

        let me = json_ld(&client.get("/api/me").await, 200);
        let id = id(&me);
        assert_eq!(
            me,
            json!({
                "@context": "/api/contexts/ApiApp",
                "@id": format!("/api/api_apps/{id}"),
                "@type": "http://schema.org/SoftwareApplication",
                "id": id,
                "name": "Demo shop",
                "store": format!("/api/{}", platform.store),
                "shop": null,
            })
        );
        let operators_client = json_ld(&operator.get("/api/me").await, 200);
        assert_eq!(operators_client["store"], Value::Null);
        assert_error(&platform.anonymous_client().get("/api/me").await, 401);
    }

    async fn a_client_reads_itself_but_no_other_client(platform: &Platform) {
        let client = platform.client_for(&platform.demo_client, &["tasks"]).await;
        let other = platform.new_store_client().await;

        let me = client.get("/api/me").await.expect(200);
        let path = me["@id"].as_str().unwrap();

        assert_eq!(client.get(path).await.expect(200), me);
        assert_error(&other.get(path).await, 404);
        assert_error(&platform.anonymous_client().get(path).await, 401);
    }

    /// "`name`, `enabled`, `address`, `timeSlot` IRI, `timeSlots`": of its own store only.
    async fn a_client_reads_only_its_own_store(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let path = json_ld(&client.get("/api/me").await, 200)["store"].clone();
        let path = path.as_str().unwrap();
        let delivery = client.create_delivery(draft()).await;

        let store = json_ld(&client.get(path).await, 200);
        let time_slot = store["timeSlot"].as_str().unwrap();
        assert_eq!(
            store,
            json!({
                "@context": "/api/contexts/Store",
                "@id": path,
                "@type": "http://schema.org/Store",
                "id": id(&store),
                "name": "Demo shop",
                "enabled": true,
                "address": delivery["pickup"]["address"],
                "timeSlot": time_slot,
                "timeSlots": [time_slot],
                "refusedWarnings": [],
            })
        );

        let other_path = json_ld(&other.get("/api/me").await, 200)["store"].clone();
        let bare = json_ld(&other.get(other_path.as_str().unwrap()).await, 200);
        assert_eq!(
            bare,
            json!({
                "@context": "/api/contexts/Store",
                "@id": other_path,
                "@type": "http://schema.org/Store",
                "id": id(&bare),
                "name": "Another shop",
                "enabled": true,
                "address": null,
                "timeSlot": null,
                "timeSlots": [],
                "refusedWarnings": [],
            })
        );

        assert_error(&other.get(path).await, 404);
        assert_error(&client.get(&format!("/api/stores/{UNKNOWN_ID}")).await, 404);
        assert_error(&platform.anonymous_client().get(path).await, 401);
        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;
        assert_error(&tasks_only.get(path).await, 403);
    }

    /// "`name`, `interval` ("2 days"), `priorNotice` (null or "1 hour"), `workingDaysOnly`,
    /// `openingHoursSpecification` […]: never empty"; and its choices below its IRI.
    async fn a_time_slot_has_opening_hours_and_choices(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        operator
            .apply_time_slot(
                &platform.store,
                r#"
                    name = "Tour"
                    opening_hours = ["Mo-Sa 10:00-11:00", "Mo 14:00-15:00"]
                    interval = "2 days"
                    prior_notice = "1 hour"
                    working_days_only = true
                    closed = ["2020-04-03"]
                "#,
            )
            .await;
        let store = json_ld(&client.get(&format!("/api/{}", platform.store)).await, 200);
        let path = store["timeSlot"].as_str().unwrap();

        let time_slot = json_ld(&client.get(path).await, 200);
        let row = |opens: &str, closes: &str, days: Value, closed: Value| {
            json!({
                "@type": "OpeningHoursSpecification",
                "opens": opens,
                "closes": closes,
                "dayOfWeek": days,
                "validFrom": closed,
                "validThrough": closed,
            })
        };
        let working_days = json!(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]);
        assert_eq!(
            time_slot,
            json!({
                "@context": "/api/contexts/TimeSlot",
                "@id": path,
                "@type": "TimeSlot",
                "id": id(&time_slot),
                "name": "Tour",
                "interval": "2 days",
                "priorNotice": "1 hour",
                "workingDaysOnly": true,
                "openingHoursSpecification": [
                    row("10:00", "11:00", working_days, Value::Null),
                    row("14:00", "15:00", json!(["Monday"]), Value::Null),
                    row("00:00", "00:00", json!([]), json!("2020-04-03")),
                ],
            })
        );

        operator.apply_time_slot(&platform.store, TIME_SLOT).await;
        let daily = json_ld(&client.get(path).await, 200);
        assert_eq!(
            (&daily["priorNotice"], &daily["workingDaysOnly"]),
            (&Value::Null, &json!(false))
        );
        let default_choices = json_ld(&client.get("/api/time_slots/choices").await, 200);
        let choices = json_ld(&client.get(&format!("{path}/choices")).await, 200);
        let mut expected = default_choices;
        expected["@id"] = json!(format!("{path}/choices"));
        assert_eq!(choices, expected);
        assert_eq!(choices["choices"].as_array().map(Vec::len), Some(2));

        let other = platform.new_store_client().await;
        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;
        let mut mismatches = Mismatches::default();
        for path in [path.to_owned(), format!("{path}/choices")] {
            mismatches.check_error(&path, &other.get(&path).await, 404);
            mismatches.check_error(&path, &tasks_only.get(&path).await, 403);
            mismatches.check_error(&path, &platform.anonymous_client().get(&path).await, 401);
        }
        for path in [
            format!("/api/time_slots/{UNKNOWN_ID}"),
            format!("/api/time_slots/{UNKNOWN_ID}/choices"),
            "/api/time_slots/1".to_owned(),
            "/api/time_slots/%00/choices".to_owned(),
        ] {
            mismatches.check_error(&path, &client.get(&path).await, 404);
        }
        mismatches.assert_none();
    }

    /// "list and read **without** `secret`", only its own.
    async fn a_client_lists_its_own_webhooks_without_secrets(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let mut registered = Vec::new();
        for event in ["delivery.completed", "delivery.picked", "delivery.cancelled"] {
            let mut webhook = client.create_webhook(event, "http://127.0.0.1:9/hook").await;
            let members = webhook.as_object_mut().unwrap();
            members.remove("secret");
            members.remove("@context");
            registered.push(webhook);
            platform.advance(jiff::SignedDuration::from_secs(1));
        }
        let deleted = registered.remove(1);
        client.delete(deleted["@id"].as_str().unwrap()).await.expect(204);

        let collection = |members: Value| {
            json!({
                "@context": "/api/contexts/Webhook",
                "@id": "/api/webhooks",
                "@type": "hydra:Collection",
                "hydra:totalItems": members.as_array().map(Vec::len),
                "hydra:member": members,
                "hydra:view": {
                    "@id": "/api/webhooks",
                    "@type": "hydra:PartialCollectionView",
                },
            })
        };
        assert_eq!(
            json_ld(&client.get("/api/webhooks").await, 200),
            collection(json!(registered))
        );
        assert_eq!(
            json_ld(&other.get("/api/webhooks").await, 200),
            collection(json!([]))
        );
        assert_error(&platform.anonymous_client().get("/api/webhooks").await, 401);
    }
}

fn id(resource: &Value) -> String {
    let id = resource["id"].as_str().unwrap();
    assert!(
        resource["@id"].as_str().unwrap().ends_with(id),
        "{resource}"
    );
    id.to_owned()
}
