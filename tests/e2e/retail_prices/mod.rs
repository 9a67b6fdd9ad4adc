//! "`RetailPrice`" and `POST /api/retail_prices/calculate`.

mod amounts;
mod creating;
mod distances;
mod example;
mod operator_commands;
mod quotes;

use serde_json::{Value, json};

use crate::harness::{Response, assertions::json_ld};

const CALCULATE: &str = "/api/retail_prices/calculate";

/// A draft of a delivery over about 230 m.
fn draft() -> Value {
    json!({
        "pickup": {
            "address": { "streetAddress": "44 Rue de Rivoli", "latLng": [48.8566, 2.3530] },
        },
        "dropoff": {
            "address": { "streetAddress": "48 Rue de Rivoli", "latLng": [48.8558, 2.3551] },
            "before": "2020-04-03 13:00",
        },
    })
}

/// A draft of a delivery over about 12 km.
fn far_draft() -> Value {
    let mut draft = draft();
    draft["dropoff"]["address"]["latLng"] = json!([48.9362, 2.3574]);
    draft
}

fn calculate_excluding_tax() -> String {
    format!("{CALCULATE}?tax=excluded")
}

/// A price list with one rule, which matches every delivery. `rate` is that of the tax, in basis
/// points.
fn fixed_price(currency: &str, rate: u32, price: i64) -> String {
    let rule = format!("[[rule]]\nname = \"All\"\nwhen = \"distance >= 0\"\nprice = {price}\n");
    price_list(currency, rate, "first", &rule)
}

fn price_list(currency: &str, rate: u32, strategy: &str, rules: &str) -> String {
    format!(
        "currency = \"{currency}\"\ntax = {{ name = \"VAT\", rate = {rate} }}\n\
         strategy = \"{strategy}\"\nquote_expiry = \"15 minutes\"\n\n{rules}"
    )
}

/// The members of a price that the specification names, with the token in its `@id` replaced.
/// Checks the platform's additional members, such as the distance, and removes them.
#[track_caller]
fn price(response: &Response) -> Value {
    let mut document = json_ld(response, 200);
    let id = document["@id"].as_str().unwrap();
    let token = id.strip_prefix("/api/retail_prices/").unwrap();
    assert!(!token.is_empty() && !token.contains('/'), "{id}");
    document["@id"] = json!("/api/retail_prices/…");
    assert_eq!(document["expiresAt"], "2020-04-02T11:15:00+02:00");
    assert!(document["distance"].is_u64() && document["duration"].is_u64());
    assert!(document["calculation"].is_array());
    assert_eq!(document["distanceSource"], "straight_line");
    for additional in [
        "expiresAt",
        "distance",
        "duration",
        "distanceSource",
        "calculation",
    ] {
        document.as_object_mut().unwrap().remove(additional);
    }
    document
}

fn retail_price(amount: i64, currency: &str, tax: i64, included: bool) -> Value {
    json!({
        "@context": "/api/contexts/RetailPrice",
        "@id": "/api/retail_prices/…",
        "@type": "RetailPrice",
        "amount": amount,
        "currency": currency,
        "tax": { "amount": tax, "included": included },
    })
}
