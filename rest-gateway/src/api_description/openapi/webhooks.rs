//! The `webhooks` section: the request that a receiver gets for each event.

use serde_json::{Map, Value, json};

use crate::api_description::parse_json;

/// Each event with its `operationId` and its summary.
const EVENTS: [(&str, &str, &str); 3] = [
    (
        "delivery.completed",
        "onDeliveryCompleted",
        "Receive that a delivery is completed",
    ),
    (
        "delivery.picked",
        "onDeliveryPicked",
        "Receive that a parcel is picked up",
    ),
    (
        "delivery.cancelled",
        "onDeliveryCancelled",
        "Receive that a delivery is cancelled",
    ),
];

/// The request for each event: `webhook.json`, with what depends on the event and the platform. It
/// is `x-internal`: openapi-generator would make functions that send it to the API.
pub(super) fn all(platform_name: &str) -> Map<String, Value> {
    let signature = format!("X-{platform_name}-Signature");
    let rules = include_str!("webhooks.md").trim_end();
    let request = |(event, operation_id, summary): (&str, &str, &str)| {
        let mut request: Value = parse_json(include_str!("webhook.json"));
        request["operationId"] = json!(operation_id);
        request["summary"] = json!(summary);
        request["description"] = json!(rules.replace("{signature}", &signature));
        for parameter in request["parameters"].as_array_mut().into_iter().flatten() {
            if parameter["name"] == "{signature}" {
                parameter["name"] = json!(signature);
            }
        }
        let content = &mut request["requestBody"]["content"]["application/json"];
        content["example"]["data"]["event"] = json!(event);
        (event.to_owned(), json!({"post": request}))
    };
    EVENTS.map(request).into_iter().collect()
}
