//! The example of each violation and warning code: a request that causes it is sent, and its
//! violation or warning compared with the recorded one. The examples in [`NOT_RECORDED`] are written
//! by hand.
//!
//! `UPDATE_EXAMPLES=1 cargo test --test e2e violation_examples` rewrites the examples.

use hyper::Method;
use serde_json::{Map, Value, json};

use crate::{
    examples::check_or_write,
    harness::{ApiClient, Database, Mismatches, Platform, iri},
};

const FILE: &str = "rest-gateway/src/api_description/openapi/violation_examples.json";

/// A dropoff with a member that replaces or joins those of a valid one.
const DROPOFFS: &[(&str, &str)] = &[
    ("absurd_time", r#""before": "1999-12-31 12:00""#),
    ("address_not_found", r#""address": "Xyzzy""#),
    ("address_unclear", r#""address": "Paris""#),
    ("control_character", r#""comments": "a\u0000b""#),
    ("invalid_key", r#""metadata": {"a\nb": "c"}"#),
    (
        "invalid_point",
        r#""address": {"latLng": [148.8566, 2.3522]}"#,
    ),
    (
        "invalid_telephone",
        r#""address": {"streetAddress": "48 Rue de Rivoli, 75004 Paris", "telephone": "unknown"}"#,
    ),
    ("invalid_time", r#""before": "asap""#),
    ("invalid_time_slot", r#""timeSlot": "tomorrow""#),
    ("out_of_order", r#""after": "tomorrow 14:00""#),
    ("out_of_range", r#""weight": -1"#),
    ("required", r#""before": null"#),
    ("repeated", r#""weight": 1, "weight": 2"#),
    ("too_many", r#""tags": "TAGS""#),
    (
        "unknown_country",
        r#""address": {"streetAddress": "48 Rue de Rivoli, 75004 Paris", "addressCountry": "France"}"#,
    ),
    ("wrong_type", r#""weight": 2.5"#),
];

/// Other requests: the code, the method, the path and the body. `WEBHOOK` is the IRI of a webhook.
const REQUESTS: &[(&str, Method, &str, &str)] = &[
    (
        "invalid_cursor",
        Method::GET,
        "/api/deliveries?cursor=x",
        "",
    ),
    (
        "invalid_instant",
        Method::POST,
        "WEBHOOK/recover",
        r#"{"since": "yesterday"}"#,
    ),
    (
        "invalid_json",
        Method::POST,
        "/api/deliveries",
        "{'dropoff': 1}",
    ),
    (
        "invalid_url",
        Method::POST,
        "/api/webhooks",
        r#"{"event": "delivery.completed", "url": "shop.example/hook"}"#,
    ),
    (
        "unknown_event",
        Method::POST,
        "/api/webhooks",
        r#"{"event": "delivery.delivered", "url": "https://shop.example/hook"}"#,
    ),
    (
        "unknown_parameter",
        Method::GET,
        "/api/deliveries?statsu=TODO",
        "",
    ),
    (
        "unknown_price",
        Method::POST,
        "/api/deliveries/assert",
        r#"{"retailPrice": "/api/retail_prices/1", "dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"}}"#,
    ),
    (
        "unknown_state",
        Method::GET,
        "WEBHOOK/notifications?state=sent",
        "",
    ),
    (
        "unknown_value",
        Method::POST,
        "/api/retail_prices/calculate?tax=none",
        r#"{"dropoff": {"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"}}"#,
    ),
];

/// Members of a valid dropoff that cause a warning.
const WARNINGS: &[(&str, &str, &str)] = &[
    ("far_away", "address", r#"{"latLng": [40.7484, -73.9857]}"#),
    (
        "other_postcode",
        "address",
        "24 Rue de la Paix, 75001 Paris",
    ),
    ("past_time", "before", "2020-04-01 13:00"),
    (
        "price_not_calculated",
        "address",
        r#"{"latLng": [40.7484, -73.9857]}"#,
    ),
    ("slot_not_offered", "timeSlot", "2020-12-25 03:00-04:00"),
    ("unknown_member", "weigth", "1500"),
    ("vague_address", "address", "48 Rue de Rivoli"),
    ("zero_point", "address", r#"{"latLng": [0, 0]}"#),
];

/// Violations that need another store, another router, the scope `dispatch`, or a request that no HTTP client
/// sends. Other tests cause them.
const NOT_RECORDED: &[(&str, &str, &str)] = &[
    ("conflict", "Host", "must be equal to `:authority`"),
    (
        "duplicate_webhook",
        "url",
        "gets each event twice: /api/webhooks/01932e5c-9f4a-7000-8000-00000000000a is for the same event and url; delete the one that you do not need",
    ),
    (
        "invalid_image",
        "file",
        "must be a whole JPEG, PNG or WebP image that is not animated",
    ),
    ("malformed", "", "the body is not well-formed HTTP"),
    (
        "malformed_reason",
        "reason",
        "must be a code of 1 to 64 letters, digits and underscores, such as NOT_AT_HOME",
    ),
    (
        "no_route",
        "dropoff.address",
        "there is no route from the pickup to the dropoff",
    ),
    (
        "outside_service_area",
        "dropoff.address",
        "is 12.4 km away: the store delivers within 10 km",
    ),
    (
        "time_slot_refused",
        "dropoff.timeSlot",
        "the slot 2020-04-02 12:00-14:00 is not offered: full, its capacity of 10 is booked; the next available slot is 2020-04-02 14:00-17:00",
    ),
    (
        "time_slot_required",
        "dropoff.timeSlot",
        "is required: the store delivers in the slots that it offers; no slot can be booked now",
    ),
    ("unknown_courier", "username", "no courier has this name"),
    (
        "unknown_package",
        "dropoff.packages[0].type",
        "there is no package type \"XXL\": the store has S, M, XL",
    ),
    (
        "unsupported",
        "Transfer-Encoding",
        "must be `chunked`, once",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_violation_example_is_of_a_real_response() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut examples: Map<String, Value> = NOT_RECORDED
        .iter()
        .map(|(code, path, message)| {
            let violation = json!({"propertyPath": path, "message": message, "code": code});
            ((*code).to_owned(), violation)
        })
        .collect();
    let mut mismatches = Mismatches::default();
    let mut record = |(code, violation): (&str, Value)| {
        mismatches.check_eq(&violation, &violation["code"], &json!(code));
        examples.insert(code.to_owned(), violation);
    };

    for (code, member) in DROPOFFS {
        let member = member.replace("TAGS", &"a ".repeat(51));
        let valid = [
            ("address", r#""address": "48 Rue de Rivoli, 75004 Paris""#),
            ("before", r#""before": "tomorrow 13:00""#),
        ];
        let others = valid
            .iter()
            .filter(|(name, _)| !member.starts_with(&format!("\"{name}\"")))
            .map(|(_, other)| *other);
        let members: Vec<_> = others.chain([member.as_str()]).collect();
        let body = format!(r#"{{"dropoff": {{{}}}}}"#, members.join(", "));
        record((
            code,
            violation(&client, Method::POST, "/api/deliveries", body).await,
        ));
    }
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    for (code, method, path, body) in REQUESTS {
        let path = path.replace("WEBHOOK", iri(&webhook));
        let body = (*body).to_owned();
        record((code, violation(&client, method.clone(), &path, body).await));
    }
    let long = json!({"externalReference": "a".repeat(201)}).to_string();
    record((
        "too_long",
        violation(&client, Method::POST, "/api/deliveries", long).await,
    ));
    record(("invalid_idempotency_key", of_idempotency_key(&client).await));
    for (code, member, value) in WARNINGS {
        let mut dropoff =
            json!({"address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00"});
        dropoff[member] = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        let draft = json!({ "dropoff": dropoff });
        let preview = client
            .post("/api/deliveries/assert", draft)
            .await
            .expect(200);
        let mut warnings = preview["warnings"].as_array().unwrap().iter();
        let found = warnings.find(|warning| warning["code"] == *code);
        record((code, found.unwrap().clone()));
    }
    for (code, violation) in of_quotes(&platform, &client).await {
        record((code, violation));
    }
    platform.stop().await;
    mismatches.assert_none();

    check_or_write(FILE, &Value::Object(examples));
}

/// The first violation in the response to a request.
async fn violation(client: &ApiClient, method: Method, path: &str, body: String) -> Value {
    let request = client.request(method, path);
    let response = client.send(request, body).await;
    response.expect(400)["violations"][0].clone()
}

async fn of_idempotency_key(client: &ApiClient) -> Value {
    let response = client
        .post_with_key("/api/deliveries", "é", &json!({}))
        .await;
    let violations = response.expect(400)["violations"].clone();
    let mut violations = violations.as_array().unwrap().iter();
    let found = violations.find(|violation| violation["propertyPath"] == "Idempotency-Key");
    found.unwrap().clone()
}

/// The violations of a delivery with the price of another, and with an expired price.
async fn of_quotes(platform: &Platform, client: &ApiClient) -> [(&'static str, Value); 2] {
    let draft = |address: &str, quote: &Value| json!({"dropoff": {"address": address, "before": "tomorrow 13:00"}, "retailPrice": quote});
    let near = "48 Rue de Rivoli, 75004 Paris";
    let priced = client
        .post("/api/retail_prices/calculate", draft(near, &Value::Null))
        .await
        .expect(200);
    let quote = &priced["@id"];
    let other = draft("24 Rue de la Paix, 75002 Paris", quote);
    let differs = client.post("/api/deliveries", other).await.expect(400);
    platform.advance(jiff::SignedDuration::from_hours(1));
    // The first token has expired too.
    let client = platform.client().await;
    let mut late = draft(near, quote);
    // An expired price is reported together with other violations.
    late["dropoff"]["weight"] = json!(-1);
    let expired = client.post("/api/deliveries", late).await.expect(400);
    let expired = expired["violations"]
        .as_array()
        .unwrap()
        .iter()
        .find(|violation| violation["code"] == "price_expired")
        .unwrap_or_else(|| panic!("{expired}"))
        .clone();
    [
        ("differs", differs["violations"][0].clone()),
        ("price_expired", expired),
    ]
}
