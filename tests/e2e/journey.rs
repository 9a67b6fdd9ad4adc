//! The specification's main scenario, from the token to the verified signature ("What the service
//! does", 1 to 6).

use serde_json::json;

use crate::harness::{Notification, Platform, WebhookReceiver};

on_both_databases! {
    /// Get a token, calculate the price, choose a slot, register a webhook, create, poll, receive
    /// the notification.
    async fn a_delivery_is_priced_created_tracked_and_its_completion_notified(platform: &Platform) {
        let receiver = WebhookReceiver::start().await;
        let client = platform.client().await;

        let choices = client.get("/api/time_slots/choices").await.expect(200);
        let slot = choices["choices"][0]["value"].as_str().unwrap().to_owned();
        let draft = json!({
            "pickup": {
                "address": "24 Rue de la Paix, 75002 Paris",
                "before": "tomorrow 11:00",
            },
            "dropoff": {
                "address": {
                    "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                    "description": "Code A1234, third floor",
                    "contactName": "Jane Doe",
                    "telephone": "+33612345678",
                    "latLng": [48.8566, 2.3522],
                },
                "before": "tomorrow 13:00",
            },
        });

        let with_tax = client
            .post("/api/retail_prices/calculate", draft.clone())
            .await
            .expect(200);
        let without_tax = client
            .post("/api/retail_prices/calculate?tax=excluded", draft.clone())
            .await
            .expect(200);
        assert_eq!(with_tax["@type"], "RetailPrice");
        assert_eq!(with_tax["currency"], "EUR");
        assert_eq!(with_tax["tax"]["included"], true);
        assert_eq!(without_tax["tax"]["included"], false);
        assert_eq!(
            without_tax["amount"].as_i64().unwrap(),
            with_tax["amount"].as_i64().unwrap() - with_tax["tax"]["amount"].as_i64().unwrap()
        );

        let webhook = client.create_webhook("delivery.completed", receiver.url()).await;
        assert_eq!(webhook["@type"], "Webhook");
        let secret = webhook["secret"].as_str().unwrap();

        let delivery = client.create_delivery(draft).await;
        let in_slot = json!({ "address": "45 Rue d'Ulm, Paris", "timeSlot": slot });
        let unfinished = client.create_delivery(json!({ "dropoff": in_slot })).await;
        assert_eq!(delivery["@type"], "http://schema.org/ParcelDelivery");
        let pickup = delivery["pickup"]["@id"].as_str().unwrap();
        let dropoff = delivery["dropoff"]["@id"].as_str().unwrap();
        for task in [pickup, dropoff] {
            let task = client.get(task).await.expect(200);
            assert_eq!((&task["@type"], &task["status"]), (&json!("Task"), &json!("TODO")));
        }

        let courier = platform.courier().await;
        courier.complete(pickup).await;
        assert_eq!(client.get(pickup).await.expect(200)["status"], "DONE");
        assert_eq!(client.get(dropoff).await.expect(200)["status"], "TODO");
        courier.complete(dropoff).await;
        courier.complete(dropoff).await;

        let notification = receiver.next_notification().await;
        assert_eq!(client.get(dropoff).await.expect(200)["status"], "DONE");
        assert_eq!(
            notification.json(),
            json!({ "data": { "object": delivery["@id"], "event": "delivery.completed" } })
        );
        assert_signed(&notification, secret);

        // The next notification is the second delivery's: none was duplicated or premature.
        for task in ["pickup", "dropoff"] {
            courier.complete(unfinished[task]["@id"].as_str().unwrap()).await;
        }
        let notification = receiver.next_notification().await;
        assert_eq!(notification.json()["data"]["object"], unfinished["@id"]);
        assert_signed(&notification, secret);
        assert!(receiver.received().await.is_empty());
    }
}

/// Checks both signatures: by the specification's formula, and with the library of Standard
/// Webhooks.
fn assert_signed(notification: &Notification, secret: &str) {
    assert!(notification.is_signed_with(secret));
    assert!(!notification.is_signed_with("another secret"));
    assert!(notification.has_standard_signature(secret));
}
