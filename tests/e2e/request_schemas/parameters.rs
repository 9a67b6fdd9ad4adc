//! Parameters in paths and queries.

use hyper::Method;
use serde_json::{Value, json};

use super::deliveries::draft_with;
use crate::harness::{Database, Documentation, Mismatches, Platform, iri};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_permits_a_parameter_if_and_only_if_it_is_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client
        .create_delivery(draft_with("externalReference", &json!("7")))
        .await;
    let quote = client
        .post(
            "/api/retail_prices/calculate",
            draft_with("externalReference", &json!(null)),
        )
        .await
        .expect(200);
    let delivery = iri(&delivery).rsplit('/').next().unwrap();
    let quote = iri(&quote).rsplit('/').next().unwrap();
    let upper_case = delivery.to_uppercase();
    let documentation = Documentation::of(&platform.base_url).await;
    let mut mismatches = Mismatches::default();

    for (template, name, values) in [
        (
            "/api/deliveries/{id}",
            "id",
            &[delivery, "assert", &upper_case, "x"][..],
        ),
        (
            "/api/retail_prices/{token}",
            "token",
            &[quote, "calculate", "x"],
        ),
        ("/api/deliveries", "createdAt[after]", &["", " ", "today"]),
        (
            "/api/deliveries",
            "dropoff.before[before]",
            &["", " ", "today"],
        ),
        ("/api/deliveries", "externalReference", &["", "7", "8"]),
        ("/api/deliveries", "status", &["", "todo", "TODO", "DONE"]),
        (
            "/api/deliveries",
            "state",
            &["", "PICKED", "picked", "in_transit"],
        ),
        (
            "/api/deliveries",
            "exists[cancelledAt]",
            &["", "yes", "true", "0"],
        ),
        (
            "/api/deliveries",
            "itemsPerPage",
            &["", "0", "1", "100", "101", "1.5", "x"],
        ),
        ("/api/events", "after", &["", "-1", "0", "x"]),
        ("/api/events", "itemsPerPage", &["", "0", "1", "100", "101"]),
        (
            "/api/webhooks",
            "itemsPerPage",
            &["", "0", "1", "100", "101"],
        ),
        ("/api/webhooks", "page", &["", "0", "1", "2"]),
        ("/api/deliveries", "page", &["", "0", "1", "2"]),
        ("/api/events", "order[id]", &["", "ASC", "DESC", "desc"]),
    ] {
        let schema = documentation.parameter(&Method::GET, template, name);
        for value in values {
            let path = if template.ends_with('}') {
                template.replace(&format!("{{{name}}}"), value)
            } else {
                let mut query = url::form_urlencoded::Serializer::new(String::new());
                query.append_pair(name, value);
                format!("{template}?{}", query.finish())
            };
            // In a URL a number is text; the schema is of the number.
            let number = value
                .parse::<Value>()
                .ok()
                .filter(|_| schema["type"] == "integer");
            let instance = number.unwrap_or_else(|| json!(value));

            let errors = documentation.errors(schema, &instance);

            let response = client.get(&path).await;
            let case = format!("{template} {name}={value:.40}: {errors:?}");
            mismatches.check_eq(case, response.status == 200, errors.is_empty());
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

/// A list in one parameter, such as `state=failed,exhausted`, is one unknown value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeatable_parameter_is_an_array_of_the_values_that_are_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    let path = format!("{}/notifications", iri(&webhook));
    let documentation = Documentation::of(&platform.base_url).await;
    let template = "/api/webhooks/{id}/notifications";
    let described = documentation.parameter(&Method::GET, template, "state");
    let mut mismatches = Mismatches::default();

    for values in [
        &[][..],
        &["failed"],
        &["failed", "exhausted"],
        &["failed", "failed"],
        &["pending", "failed", "delivered", "exhausted", "cancelled"],
        &["failed", "sent"],
        &["failed,exhausted"],
        &[""],
    ] {
        let errors = documentation.errors(described, &json!(values));
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(values.iter().map(|value| ("state", value)));

        let response = client.get(&format!("{path}?{}", query.finish())).await;

        let case = format!("{values:?}: {errors:?}");
        mismatches.check_eq(case, response.status == 200, errors.is_empty());
    }

    mismatches.assert_none();
    platform.stop().await;
}
