//! The `webhooks` section: the request that a receiver gets for each event.

use serde_json::{Map, Value, json};

use super::schemas;
use crate::api_description::{enumerations, parse_json};

/// Secrets, bodies and signatures that agree; the documentation checks compute them independently.
pub(super) fn signature_vectors() -> Value {
    parse_json(include_str!("signature_vectors.json"))
}

const RULES: &str = "\
The platform sends this request to the `url` of each enabled webhook for the event.\n\n\
**Respond** with 2xx within 15 s, before any slow work. Any other status, a redirect included, and \
no response are failures. 410 disables the webhook.\n\n\
**Verify the sender** with one of the two signatures, over the bytes of the body as received, before \
it is parsed. Compare in constant time.\n\n\
| header | value | key |\n\
|---|---|---|\n\
| `{signature}` | Base64 of HMAC-SHA256 of the body | the text of `secret`, as it is |\n\
| `webhook-signature` | for each valid secret `v1,` and Base64 of HMAC-SHA256 of `webhook-id`, `.`, \
`webhook-timestamp`, `.` and the body; separated by spaces | the 32 bytes that `secret` encodes in \
Base64 |\n\n\
`webhook-signature` is that of [Standard Webhooks](https://www.standardwebhooks.com): its libraries \
take `secret` unchanged. Reject a `webhook-timestamp` that differs from your clock by more than five \
minutes. While a secret is rotated, `webhook-signature` has an entry for each valid secret, and \
`{signature}` is made with the old secret until the new one is confirmed or the overlap ends. \
`x-signature-vectors` of this document has examples to test with.\n\n\
**Retries**: a failed attempt is repeated after about 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h \
and 24 h, each time with the same `webhook-id` and a new `webhook-timestamp`. `Retry-After` of 429 and \
503 is respected up to 24 h. A webhook whose attempts fail for days is disabled.\n\n\
**Repeats and order**: a notification is sent at least once, and notifications arrive in any order. \
Store the `webhook-id`s that you have processed, and read the resource for its present state.";

/// The request for each event.
pub(super) fn all(platform_name: &str) -> Map<String, Value> {
    enumerations::EVENT_NAME
        .values
        .iter()
        .map(|event| {
            (
                (*event).to_owned(),
                json!({"post": request(event, platform_name)}),
            )
        })
        .collect()
}

fn request(event: &str, platform_name: &str) -> Value {
    let signature = format!("X-{platform_name}-Signature");
    let (operation_id, summary) = match event {
        "delivery.picked" => ("onDeliveryPicked", "Receive that a parcel is picked up"),
        "delivery.cancelled" => (
            "onDeliveryCancelled",
            "Receive that a delivery is cancelled",
        ),
        _ => (
            "onDeliveryCompleted",
            "Receive that a delivery is completed",
        ),
    };
    let header = |name: &str, description: &str, schema: Value, example: Value| {
        json!({
            "name": name,
            "in": "header",
            "required": true,
            "description": description,
            "schema": schema,
            "example": example,
        })
    };
    let text = || json!({"type": "string"});
    json!({
        "operationId": operation_id,
        "tags": ["Webhooks"],
        "summary": summary,
        "description": RULES.replace("{signature}", &signature),
        "security": [],
        // openapi-generator would make functions that send the request to the API.
        "x-internal": true,
        "parameters": [
            header(&signature, "Base64 of HMAC-SHA256 of the body, keyed with the text of `secret`.",
                text(), json!("yH1SuBVjVKzrno4h9/b3Nb//X11yRc+EGRHr959o61U=")),
            header("webhook-id", "The id of the notification; the same in each retry.",
                json!({"type": "string", "format": "uuid"}),
                json!("01932e5c-9f4a-7000-8000-000000000002")),
            header("webhook-timestamp", "When this attempt began: seconds since 1970-01-01T00:00:00Z.",
                json!({"type": "integer"}), json!(1_600_000_000)),
            header("webhook-signature", "The signatures of Standard Webhooks, separated by spaces.",
                text(), json!("v1,kwjUu7Ss1ibk7SMtdy4TQ12u6tABNY+FcwSLXoHOl6s=")),
        ],
        "requestBody": {
            "description": "Compact JSON. Each `/` is sent as `\\/`, which JSON parsers read as `/`.",
            "required": true,
            "content": {
                "application/json": {
                    "schema": schemas::named("WebhookNotification"),
                    "example": {"data": {
                        "object": "/api/deliveries/01932e5c-9f4a-7000-8000-000000000001",
                        "event": event,
                    }},
                },
            },
        },
        "responses": {
            "2XX": {"description": "The notification is received; it is not sent again."},
            "410": {"description": "The receiver wants no more notifications: the webhook is disabled, and its pending notifications are cancelled."},
            "429": {"description": "The notification is sent again, after `Retry-After` at the earliest."},
            "503": {"description": "The notification is sent again, after `Retry-After` at the earliest."},
            "default": {"description": "The notification is sent again later."},
        },
    })
}
