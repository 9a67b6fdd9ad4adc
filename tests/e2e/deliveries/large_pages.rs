//! Pages of the largest deliveries.

use serde_json::{Value, json};

use crate::harness::{Platform, assertions::assert_violations};

/// Would be the largest page, if they were shorter.
const COUNT: usize = 100;

on_both_databases! {
    async fn a_page_of_the_largest_deliveries_has_fewer_and_a_link_to_the_next(platform: &Platform) {
        // Of a store without a price list, which would have to name the package types.
        let client = platform.new_store_client().await;
        let mut first = Value::Null;
        for number in 0..COUNT {
            let created = client.create_delivery(largest_delivery(number)).await;
            if number == 0 {
                first = created;
            }
        }

        let mut members = Vec::new();
        let mut next = Some("/api/deliveries?itemsPerPage=100".to_owned());
        while let Some(path) = next {
            let page = client.get(&path).await.expect(200);
            let listed = page["hydra:member"].as_array().unwrap();
            next = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
            // Of 64 KiB of texts each; a page has a mebibyte.
            assert!(listed.len() == 16 || next.is_none(), "{}", listed.len());
            members.extend_from_slice(listed);
        }

        assert_eq!(members.len(), COUNT);
        first.as_object_mut().unwrap().remove("@context");
        assert!(members[COUNT - 1] == first, "the oldest delivery is not the first created");
    }

    async fn a_task_with_more_than_32_kib_of_texts_is_rejected(platform: &Platform) {
        let client = platform.new_store_client().await;
        let (most, more) = (task(280), task(281));
        let message = "must have texts of at most 32768 bytes together, not 32769";

        for path in ["/api/deliveries", "/api/deliveries/assert"] {
            let draft = json!({ "pickup": more, "dropoff": most });
            let rejected = client.post(path, draft).await;
            assert_violations(&rejected, &["pickup"]);
            assert_eq!(rejected.json["violations"][0]["message"], message, "{path}");
        }
    }
}

/// A delivery whose texts are as long as allowed together: 32 KiB for each task.
fn largest_delivery(number: usize) -> Value {
    let reference = format!("{number:03}{}", text(197));
    let task = task(280);
    json!({ "pickup": task, "dropoff": task, "externalReference": reference })
}

/// A task of 32 KiB of texts with a comment of 280 bytes.
fn task(comment: usize) -> Value {
    json!({
        "address": {
            "streetAddress": text(500),
            "postalCode": text(200),
            "addressLocality": text(200),
            "latLng": [48.8566, 2.3522],
            "name": text(200),
            "contactName": text(200),
            "telephone": "+33612345678",
            "description": text(5000),
        },
        "before": "tomorrow 13:00",
        "comments": "c".repeat(comment),
        "packages": vec![json!({ "type": text(50), "quantity": 10_000 }); 10],
        "tags": vec![text(64); 10],
        "metadata": { text(64): text(500), text(10): text(105) },
    })
}

/// A text of characters of four bytes.
fn text(length: usize) -> String {
    "𝔸".repeat(length)
}
