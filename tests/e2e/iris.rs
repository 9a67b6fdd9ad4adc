//! "Every IRI in a response answers `GET`, except the `@id` of an address" (docs/guides/requests.md).

use std::collections::BTreeSet;

use hyper::header::LINK;
use serde_json::{Value, json};

use crate::harness::{
    Mismatches, Platform, Response, assertions::assert_violations, deliver, draft, iri,
};

/// The IRIs in responses.
#[derive(Default)]
struct Found {
    /// To be read.
    pending: BTreeSet<String>,
    read: BTreeSet<String>,
    /// The `@id`s of addresses.
    addresses: BTreeSet<String>,
    base_url: String,
}

impl Found {
    fn add(&mut self, response: &Response) {
        self.add_json(&response.json);
        for link in response.headers.get_all(LINK) {
            let target = link.to_str().unwrap().split(['<', '>']).nth(1);
            self.add_text(target.unwrap());
        }
    }

    fn add_json(&mut self, json: &Value) {
        match json {
            Value::Object(members) => members.values().for_each(|value| self.add_json(value)),
            Value::Array(values) => values.iter().for_each(|value| self.add_json(value)),
            Value::String(text) => self.add_text(text),
            _ => {}
        }
    }

    /// Adds the text if it is an IRI. A template, such as that of a search, is not an IRI.
    fn add_text(&mut self, text: &str) {
        let path = text.strip_prefix(&self.base_url).unwrap_or(text);
        let path = path.split('#').next().unwrap();
        let is_iri = path.starts_with("/api") || path.starts_with("/errors/");
        let is_template = path.contains('{');
        if path.starts_with("/api/addresses/") {
            self.addresses.insert(path.to_owned());
        } else if is_iri && !is_template && !self.read.contains(path) {
            self.pending.insert(path.to_owned());
        }
    }
}

on_both_databases! {
    async fn every_iri_in_a_response_answers_get(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        // Nothing listens there.
        let webhook = client.create_webhook("delivery.completed", "http://127.0.0.1:9/").await;
        let delivery = deliver(&client, &courier).await;
        let of_webhook = |page: Value| page["hydra:member"].get(0).cloned();
        client.wait_until(&format!("{}/notifications", iri(&webhook)), of_webhook).await;
        client.create_delivery(draft()).await;
        let quote = client.post("/api/retail_prices/calculate", draft()).await;
        let error = client.get("/api/deliveries?itemsPerPage=x").await;
        let mut mismatches = Mismatches::default();
        let mut found = Found { base_url: platform.base_url.clone(), ..Found::default() };
        for start in ["/api", "/api/me", "/api/time_slots/choices", "/api/deliveries?itemsPerPage=1"] {
            found.pending.insert(start.to_owned());
        }
        for response in [&quote, &error] {
            found.add(response);
        }

        while let Some(path) = found.pending.pop_first() {
            let response = client.get(&path).await;
            mismatches.check_eq(path.clone(), response.status, 200);
            // The documentation names the paths of operations, of any method.
            if response.json["@type"] != "hydra:ApiDocumentation" {
                found.add(&response);
            }
            found.read.insert(path);
        }

        mismatches.assert_none();
        let collections = found.read.iter().filter_map(|path| path.strip_prefix("/api/"));
        let collections: BTreeSet<_> = collections
            .filter_map(|path| path.split(['/', '?']).next())
            .collect();
        let expected = [
            "api_apps", "contexts", "deliveries", "docs.jsonld", "events", "me",
            "retail_prices", "stores", "tasks", "time_slots", "webhooks",
        ];
        assert_eq!(collections, BTreeSet::from(expected));
        assert!(found.read.contains(&delivery), "{:?}", found.read);
        for address in &found.addresses {
            assert_eq!(client.get(address).await.status, 404, "{address}");
        }
        assert!(!found.addresses.is_empty());
    }

    async fn an_iri_in_place_of_an_address_is_a_violation_that_says_what_to_send(platform: &Platform) {
        let client = platform.client().await;
        let created = client.create_delivery(draft()).await;
        let path = iri(&created["dropoff"]["address"]);
        let paths = ["pickup.address", "dropoff.address"];
        let message = "must not be an IRI: send a postal address, or an object with streetAddress or latLng";

        for address in [path.to_owned(), format!("{}{path}", platform.base_url)] {
            let draft = json!({
                "pickup": { "address": address },
                "dropoff": { "address": address, "before": "tomorrow 13:00" },
            });
            let response = client.post("/api/deliveries", draft).await;

            assert_violations(&response, &paths);
            let violations = paths.map(|path| json!({
                "propertyPath": path, "message": message, "code": "address_not_found",
            }));
            assert_eq!(response.json["violations"], json!(violations));
        }
    }
}
