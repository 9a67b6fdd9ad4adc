//! Tasks: polling, completing, and completing their delivery ("Task", "States and transitions",
//! "Events").

use std::collections::BTreeSet;

use hyper::{
    Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::{Mismatches, Platform, WebhookReceiver, iri};

on_both_databases! {
    async fn a_client_polls_its_task_until_it_is_done(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let dropoff = iri(&delivery["dropoff"]);

        let before = client.get(dropoff).await;
        assert!(before.header("content-type").starts_with("application/ld+json"));
        let before = before.expect(200);
        let mut embedded = delivery["dropoff"].clone();
        embedded["@context"] = json!("/api/contexts/Task");
        assert_eq!(before, embedded);
        assert_eq!((&before["@type"], &before["status"]), (&json!("Task"), &json!("TODO")));

        platform.advance(SignedDuration::from_mins(5));
        platform.courier().await.complete(dropoff).await;

        let after = client.get(dropoff).await.expect(200);
        let mut expected = before;
        expected["status"] = json!("DONE");
        expected["updatedAt"] = json!("2020-04-02T11:05:00+02:00");
        assert_eq!(after, expected);
        let read = client.get(delivery["@id"].as_str().unwrap()).await.expect(200);
        assert_eq!(read["dropoff"]["status"], "DONE");
        assert_eq!(read["pickup"], delivery["pickup"]);
    }

    async fn completing_a_task_again_changes_nothing_and_sends_no_notification(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client.create_webhook("delivery.completed", receiver.url()).await;
        let courier = platform.client_for(&platform.operator_client, &["tasks:all"]).await;
        let first = client.create_delivery(draft()).await;
        let second = client.create_delivery(draft()).await;

        // Couriers' devices report late and out of order.
        for task in ["dropoff", "pickup"] {
            let path = format!("{}/done", iri(&first[task]));
            let done = courier.put(&path, json!({})).await.expect(200);
            let mut expected = first[task].clone();
            expected["@context"] = json!("/api/contexts/Task");
            expected["status"] = json!("DONE");
            expected["updatedAt"] = done["updatedAt"].clone();
            assert_eq!(done, expected);

            platform.advance(SignedDuration::from_mins(1));
            let again = courier.put(&path, json!({})).await.expect(200);
            assert_eq!(again, done);
        }
        assert_eq!(receiver.next_notification().await.json(), completed(&first));

        for task in ["pickup", "dropoff"] {
            courier.put(&format!("{}/done", iri(&second[task])), json!({})).await.expect(200);
        }
        assert_eq!(receiver.next_notification().await.json(), completed(&second));
        assert!(receiver.received().await.is_empty());
    }

    async fn tasks_completed_concurrently_complete_their_delivery_once(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;
        client.create_webhook("delivery.completed", receiver.url()).await;
        let courier = platform.client_for(&platform.operator_client, &["tasks:all"]).await;
        let mut expected = BTreeSet::new();
        let mut requests = tokio::task::JoinSet::new();

        for _ in 0..10 {
            let delivery = client.create_delivery(draft()).await;
            for task in ["pickup", "dropoff", "pickup", "dropoff"] {
                let path = format!("{}/done", iri(&delivery[task]));
                let courier = courier.clone();
                requests.spawn(async move { courier.put(&path, json!({})).await.status });
            }
            expected.insert(completed(&delivery).to_string());
        }
        assert_eq!(requests.join_all().await, [200; 40]);

        let mut notifications = BTreeSet::new();
        for _ in 0..expected.len() {
            notifications.insert(receiver.next_notification().await.json().to_string());
        }
        assert_eq!(notifications, expected);
        // One more notification proves that no duplicate is in flight.
        let last = client.create_delivery(draft()).await;
        for task in ["pickup", "dropoff"] {
            courier.put(&format!("{}/done", iri(&last[task])), json!({})).await.expect(200);
        }
        assert_eq!(receiver.next_notification().await.json(), completed(&last));
        assert!(receiver.received().await.is_empty());
    }

    async fn a_courier_reads_any_task_but_no_delivery_and_invalid_completions_are_rejected(
        platform: &Platform
    ) {
        let client = platform.client().await;
        let courier = platform.client_for(&platform.operator_client, &["tasks:all"]).await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = iri(&delivery["pickup"]);
        let mut mismatches = Mismatches::default();

        let read = courier.get(pickup).await.expect(200);
        assert_eq!(read, client.get(pickup).await.expect(200));
        let rejected = courier.get(delivery["@id"].as_str().unwrap()).await;
        mismatches.check_error("a delivery", &rejected, 403);
        let unknown = "/api/tasks/01932e5c-9f4a-7000-8000-00000000000a";
        for path in [unknown, "/api/tasks/1", "/api/tasks/%00"] {
            let response = courier.put(&format!("{path}/done"), json!({})).await;
            mismatches.check_error(path, &response, 404);
        }
        let done = format!("{pickup}/done");
        for (content_type, body, status) in [
            ("application/ld+json", "{", 400),
            ("application/ld+json", "[]", 400),
            ("application/ld+json", "5", 400),
            ("application/json", "\"DONE\"", 400),
            ("text/plain", "{}", 415),
        ] {
            let request = Request::put(courier.url(&done))
                .header(AUTHORIZATION, format!("Bearer {}", courier.token()))
                .header(CONTENT_TYPE, content_type);
            let response = courier.send(request, body).await;
            mismatches.check_error(format!("{content_type} {body}"), &response, status);
        }
        mismatches.assert_none();

        let state = client.get(pickup).await.expect(200);
        assert_eq!(state["status"], "TODO");
    }
}

fn draft() -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "before": "tomorrow 13:00" } })
}

fn completed(delivery: &Value) -> Value {
    json!({ "data": { "object": delivery["@id"], "event": "delivery.completed" } })
}
