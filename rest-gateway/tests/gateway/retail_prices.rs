//! `/api/retail_prices` (specification, "Retail price").

use proto::{
    CalculateRetailPriceRequest, DeliveryDraft, DistanceSource, GetRetailPriceRequest, RetailPrice,
    RuleOutcome, TaskDraft, Violation,
};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::{ErrorDetails, FieldViolation, PreconditionViolation};

use crate::harness::{
    PUBLIC_URL, Platform,
    samples::{NOON, core_status_with, instant, price},
};

const BODY: &str = r#"{"dropoff": {"before": "tomorrow"}}"#;

fn retail_price() -> RetailPrice {
    RetailPrice {
        name: "retail_prices/quote-TOKEN_1".to_owned(),
        price: Some(price()),
        expire_time: instant(NOON),
        distance_meters: 1234,
        duration_seconds: 567,
        distance_source: DistanceSource::StraightLine.into(),
        calculation: vec![RuleOutcome {
            rule: "Near".to_owned(),
            matched: true,
            reason: "distance <= 3000 is true".to_owned(),
            amount: 499,
        }],
        time_zone: "Europe/Paris".to_owned(),
    }
}

fn retail_price_json(amount: i64, included: bool) -> Value {
    json!({
        "@context": "/api/contexts/RetailPrice",
        "@id": "/api/retail_prices/quote-TOKEN_1",
        "@type": "RetailPrice",
        "amount": amount,
        "currency": "EUR",
        "tax": {"amount": 83, "included": included},
        "expiresAt": "2020-04-02T12:00:00+02:00",
        "distance": 1234,
        "duration": 567,
        "distanceSource": "straight_line",
        "calculation": [
            {"rule": "Near", "matched": true, "reason": "distance <= 3000 is true", "amount": 499},
        ],
    })
}

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn draft() -> Option<DeliveryDraft> {
    Some(DeliveryDraft {
        pickup: None,
        dropoff: Some(TaskDraft {
            before: Some("tomorrow".to_owned()),
            ..TaskDraft::default()
        }),
        external_reference: None,
        retail_price: None,
    })
}

#[tokio::test]
async fn a_price_includes_tax_unless_the_query_excludes_it() {
    for (query, amount, included) in [
        ("", 499, true),
        ("?tax=included", 499, true),
        ("?tax=excluded", 416, false),
        ("?tax=%65xcluded", 416, false),
    ] {
        let platform = Platform::start().await;
        platform.core.will_respond(retail_price());

        let path = format!("/api/retail_prices/calculate{query}");
        let reply = platform.client.post(&path, BODY).await;

        assert_eq!(reply.status, 200, "{query}");
        assert_eq!(reply.json(), retail_price_json(amount, included));
        assert_eq!(
            platform.core.received::<CalculateRetailPriceRequest>(),
            CalculateRetailPriceRequest {
                delivery: draft(),
                violations: vec![],
                store: String::new(),
            }
        );
    }
}

#[tokio::test]
async fn another_value_of_tax_is_reported_with_the_other_violations() {
    for (query, values) in [
        ("tax=", "``"),
        ("tax=Excluded", "`Excluded`"),
        ("tax=excluded&tax=excluded", "`excluded`, `excluded`"),
    ] {
        let platform = Platform::start().await;
        let description = format!("must be `included` or `excluded`, once, not {values}");
        platform.core.will_fail(core_status_with(
            Code::InvalidArgument,
            "VALIDATION_FAILED",
            "1 violation",
            ErrorDetails::with_bad_request(vec![FieldViolation {
                field: "tax".to_owned(),
                description: description.clone(),
                reason: "UNKNOWN_VALUE".to_owned(),
                localized_message: None,
            }]),
        ));

        let path = format!("/api/retail_prices/calculate?{query}");
        let reply = platform.client.post(&path, BODY).await;

        assert_eq!(reply.status, 400);
        assert_eq!(
            reply.json()["violations"],
            json!([{"propertyPath": "tax", "message": description, "code": "unknown_value"}])
        );
        assert_eq!(
            platform.core.received::<CalculateRetailPriceRequest>(),
            CalculateRetailPriceRequest {
                delivery: draft(),
                violations: vec![Violation {
                    field: "tax".to_owned(),
                    description,
                    reason: "UNKNOWN_VALUE".to_owned(),
                }],
                store: String::new(),
            }
        );
    }
}

#[tokio::test]
async fn a_price_can_be_read() {
    let platform = Platform::start().await;
    platform.core.will_respond(retail_price());
    platform.core.will_respond(retail_price());

    let path = "/api/retail_prices/quote-TOKEN_1";
    let included = platform.client.get(path).await;
    let excluded = platform.client.get(&format!("{path}?tax=excluded")).await;
    let neither = platform.client.get(&format!("{path}?tax=no")).await;

    assert_eq!(included.json(), retail_price_json(499, true));
    assert_eq!(excluded.json(), retail_price_json(416, false));
    assert_eq!(
        platform.core.received::<GetRetailPriceRequest>().name,
        "retail_prices/quote-TOKEN_1"
    );
    assert_eq!(neither.status, 400);
    assert_eq!(neither.json()["violations"][0]["propertyPath"], "tax");
}

#[tokio::test]
async fn a_missing_price_is_explained_rule_by_rule() {
    let platform = Platform::start().await;
    platform.core.will_fail(core_status_with(
        Code::FailedPrecondition,
        "PRICE_NOT_CALCULATED",
        "no rule of the price list matches",
        ErrorDetails::with_precondition_failure(vec![PreconditionViolation::new(
            "RULE",
            "Near",
            "distance <= 3000 is false",
        )]),
    ));

    let reply = platform
        .client
        .post("/api/retail_prices/calculate", BODY)
        .await;

    assert_eq!(reply.status, 400);
    assert_eq!(
        reply.error(),
        json!({
            "@context": "/api/contexts/Error",
            "@type": "hydra:Error",
            "hydra:title": "An error occurred",
            "hydra:description": "The delivery price could not be calculated.",
            "type": format!("{PUBLIC_URL}/errors/price_not_calculated"),
            "title": "No price for this delivery",
            "status": 400,
            "detail": "The delivery price could not be calculated.",
            "code": "price_not_calculated",
            "retryable": false,
            "calculation": [{
                "rule": "Near",
                "matched": false,
                "reason": "distance <= 3000 is false",
                "amount": 0,
            }],
        })
    );
}
