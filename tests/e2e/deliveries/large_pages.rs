//! The largest page of the largest deliveries.

use serde_json::{Map, Value, json};

use crate::harness::Platform;

/// The largest page.
const COUNT: usize = 100;

on_both_databases! {
    async fn the_largest_page_of_the_largest_deliveries_is_listed(platform: &Platform) {
        // Of a store without a price list, which would have to name the package types.
        let client = platform.new_store_client().await;
        let mut first = Value::Null;
        for number in 0..COUNT {
            let created = client.create_delivery(largest_delivery(number)).await;
            if number == 0 {
                first = created;
            }
        }

        let page = client.get("/api/deliveries?itemsPerPage=100").await.expect(200);

        let members = page["hydra:member"].as_array().unwrap();
        assert_eq!(members.len(), COUNT);
        first.as_object_mut().unwrap().remove("@context");
        assert!(members[COUNT - 1] == first, "the oldest delivery is not the first created");
    }
}

/// A delivery with every list and text as long as allowed, of characters of four bytes.
fn largest_delivery(number: usize) -> Value {
    let text = |length: usize| "𝔸".repeat(length);
    let metadata: Map<_, _> = (10..60)
        .map(|key| (format!("{key}{}", text(62)), json!(text(500))))
        .collect();
    let task = json!({
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
        "comments": text(5000),
        "packages": vec![json!({ "type": text(200), "quantity": 10_000 }); 100],
        "tags": vec![text(64); 50],
        "metadata": metadata,
    });
    let reference = format!("{number:03}{}", text(197));
    json!({ "pickup": task, "dropoff": task, "externalReference": reference })
}
