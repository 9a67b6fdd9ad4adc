//! Unknown query parameters: a violation at every resource, ignored by documents and health checks.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::Value;

use super::{draft, iri};
use crate::harness::{ApiClient, Database, Documentation, Mismatches, Platform};

/// Differs from the known `tax` in its case.
const UNKNOWN: &str = "Tax";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_query_parameter_is_a_violation_at_every_resource() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let operator = platform
        .client_for(&platform.operator_client, &["admin"])
        .await;
    let resources = Resources::of(&platform, &client).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let mut mismatches = Mismatches::default();
    let mut checked = 0;

    for (method, path, operation) in documentation.operations() {
        let Some(path) = resources.fill(path) else {
            continue;
        };
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}{UNKNOWN}=1&tax%5B%5D=&{UNKNOWN}=2");
        let body = &operation["requestBody"]["content"]["application/ld+json"]["example"];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let case = format!("{method} {path:.80}");
        let is_resource = is_resource(operation);
        // `/oauth2/token`, which ignores the query.
        if !is_resource && method != Method::GET {
            continue;
        }

        let is_of_dispatch = operation["security"].to_string().contains("dispatch");
        let caller = if is_of_dispatch && !operation["security"].to_string().contains("\"tasks\"") {
            &operator
        } else {
            &client
        };
        let response = caller.send(caller.request(method, &path), body).await;

        if is_resource {
            mismatches.check_eq(&case, response.status, 400);
            mismatches.check_eq(&case, response.violation_paths(), vec![UNKNOWN, "tax[]"]);
            let violations = response.json["violations"].as_array().into_iter().flatten();
            for violation in violations {
                mismatches.check_eq(&case, &violation["code"], &"unknown_parameter".into());
            }
        } else {
            mismatches.check_eq(&case, response.status, 200);
        }
        checked += 1;
    }

    assert!(checked > 35, "{checked}");
    // Nothing was executed.
    for (name, iri) in &resources.iris {
        if *name != "events" {
            mismatches.check_eq(name, client.get(iri).await.status, 200);
        }
    }
    let delivery = client.get(&resources.iris["deliveries"]).await.expect(200);
    mismatches.check_eq("cancelledAt", &delivery["cancelledAt"], &Value::Null);
    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_query_parameter_is_reported_with_the_other_violations() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let path = "/api/retail_prices/calculate?tex=excluded&tax=none";

    let mut wrong = draft();
    wrong["dropoff"]["before"] = 5.into();
    let response = client.post(path, wrong).await;
    let anonymous = platform.anonymous_client().get("/api/me?x=1").await;

    assert_eq!(response.violation_paths(), ["tex", "tax", "dropoff.before"]);
    let message = &response.json["violations"][0]["message"];
    assert_eq!(message, "is unknown; the parameters are tax");
    assert_eq!(anonymous.status, 401);
    platform.stop().await;
}

on_both_databases! {
    /// API Platform's Admin sends `order[id]`, `page` and `itemsPerPage` with each list request. Lists
    /// are paged by cursor: ignoring `page=2` would repeat the first page.
    async fn the_list_requests_of_api_platforms_admin_are_answered(platform: &Platform) {
        let client = platform.client().await;
        client.create_delivery(draft()).await;
        let webhook = client.create_webhook("delivery.picked", "http://127.0.0.1:9/").await;
        let notifications = format!("{}/notifications", iri(&webhook));
        let mut mismatches = Mismatches::default();

        for list in ["/api/deliveries", "/api/events", "/api/webhooks", &notifications] {
            let plain = client.get(list).await.expect(200);
            let page = client
                .get(&format!("{list}?order%5Bid%5D=ASC&page=1&itemsPerPage=10"))
                .await
                .expect(200);
            mismatches.check_eq(list, &page["hydra:member"], &plain["hydra:member"]);

            let wrong = client
                .get(&format!("{list}?order%5Bid%5D=up&page=2&order%5Bname%5D=ASC"))
                .await;
            let violations = wrong.expect(400)["violations"].clone();
            let mut violations: Vec<_> = violations
                .as_array()
                .unwrap()
                .iter()
                .map(|violation| {
                    ["propertyPath", "code", "message"].map(|name| violation[name].as_str().unwrap().to_owned())
                })
                .collect();
            violations.sort();
            mismatches.check_eq(list, violations.len(), 3);
            mismatches.check_eq(list, &violations[0][..2], &["order[id]", "unknown_value"].map(str::to_owned)[..]);
            mismatches.check_eq(list, &violations[1][..2], &["order[name]", "unknown_parameter"].map(str::to_owned)[..]);
            let page = ["page", "out_of_range", "must be 1: the other pages are links in hydra:view"];
            mismatches.check_eq(list, &violations[2], &page.map(str::to_owned));
        }
        mismatches.assert_none();
    }
}

/// Whether the response is JSON-LD or empty, and not another document or a health check.
fn is_resource(operation: &Value) -> bool {
    let responses = operation["responses"].as_object().unwrap();
    let (_, success) = responses
        .iter()
        .find(|(status, _)| status.starts_with('2'))
        .unwrap();
    success["content"].is_null() || !success["content"]["application/ld+json"].is_null()
}

/// A resource of each collection.
struct Resources {
    iris: BTreeMap<&'static str, String>,
}

impl Resources {
    async fn of(platform: &Platform, client: &ApiClient) -> Self {
        let delivery = client.create_delivery(draft()).await;
        let quote = client.post("/api/retail_prices/calculate", draft()).await;
        let webhook = client
            .create_webhook("delivery.picked", "http://127.0.0.1:9/")
            .await;
        let me = client.get("/api/me").await.expect(200);
        let store = client.get(me["store"].as_str().unwrap()).await.expect(200);
        let courier = platform.courier().await;
        let picked = client.create_delivery(draft()).await;
        courier.complete(iri(&picked["pickup"])).await;
        let first = async |path: &str| {
            client
                .wait_until(path, |page| {
                    Some(page["hydra:member"].get(0)?["@id"].as_str()?.to_owned())
                })
                .await
        };
        let task = proto::iri::name(iri(&delivery["pickup"]));
        let image = platform.operator().await.upload_image(task).await;
        let notification = first(&format!("{}/notifications", iri(&webhook))).await;
        Self {
            iris: BTreeMap::from([
                ("api_apps", iri(&me).to_owned()),
                ("deliveries", iri(&delivery).to_owned()),
                ("tasks", iri(&delivery["pickup"]).to_owned()),
                ("retail_prices", iri(&quote.expect(200)).to_owned()),
                ("stores", iri(&store).to_owned()),
                ("time_slots", store["timeSlot"].as_str().unwrap().to_owned()),
                ("webhooks", iri(&webhook).to_owned()),
                ("notifications", notification),
                ("events", first("/api/events").await),
                ("images", proto::iri::of(&image)),
            ]),
        }
    }

    /// The path of an operation, with the id or the name of something that exists; none for a
    /// document that the test does not request.
    fn fill(&self, template: &str) -> Option<String> {
        let Some((collection, rest)) = template.split_once("/{") else {
            return Some(template.to_owned());
        };
        let (_, rest) = rest.split_once('}')?;
        match collection {
            "/api/contexts" => Some("/api/contexts/Task".to_owned()),
            "/api/docs" | "/errors" | "/t" | "/t/files" => None,
            _ => {
                let name = collection.strip_prefix("/api/")?;
                Some(format!(
                    "{}{rest}",
                    self.iris.get(name).unwrap_or_else(|| panic!("{name}"))
                ))
            }
        }
    }
}
