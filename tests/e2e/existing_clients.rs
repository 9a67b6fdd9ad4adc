//! Compatibility with existing, unmodified shop clients: each request has the headers and members
//! that such a client sends, and each response those that it reads.

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Value, json};

use crate::harness::{ApiClient, Platform, Response};

/// The request headers of a client.
struct ClientHeaders {
    accept: Option<&'static str>,
    /// Also sent with requests without a body.
    content_type: &'static str,
}

const WORDPRESS: ClientHeaders = ClientHeaders {
    accept: Some("*/*"),
    content_type: "application/ld+json",
};

const PRESTASHOP: ClientHeaders = ClientHeaders {
    accept: None,
    content_type: "application/ld+json",
};

const SDK: ClientHeaders = ClientHeaders {
    accept: Some("application/json"),
    content_type: "application/json",
};

impl ClientHeaders {
    async fn send(
        &self,
        client: &ApiClient,
        (method, path): (Method, &str),
        (authorization, body): (Option<&str>, &str),
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(client.url(path))
            .header(CONTENT_TYPE, self.content_type);
        if let Some(accept) = self.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        client.send(request, body.to_owned()).await
    }

    async fn get(&self, client: &ApiClient, token: &str, path: &str) -> Value {
        let authorization = Some(token);
        self.send(client, (Method::GET, path), (authorization, ""))
            .await
            .expect(200)
    }

    async fn post(&self, client: &ApiClient, token: &str, path: &str, body: &Value) -> Response {
        let body = body.to_string();
        self.send(client, (Method::POST, path), (Some(token), &body))
            .await
    }
}

/// Requests a token as these clients do, with the scheme in their spelling.
async fn token(platform: &Platform, scheme: &str, scope: &str) -> String {
    let credentials = &platform.demo_client;
    let basic = format!("{}:{}", credentials.api_key, credentials.api_secret);
    let anonymous = platform.anonymous_client();
    let request = Request::post(anonymous.url("/oauth2/token"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(
            AUTHORIZATION,
            format!("{scheme} {}", BASE64_STANDARD.encode(basic)),
        );
    let body = format!("grant_type=client_credentials&scope={scope}");
    let granted = anonymous.send(request, body).await.expect(200);
    assert_eq!(granted["token_type"], "Bearer");
    assert_eq!(granted["expires_in"], 3600);
    format!("Bearer {}", granted["access_token"].as_str().unwrap())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

on_both_databases! {
    /// Checks the entrypoint, finds the store's time slot, reads its choices for the checkout, and
    /// creates the delivery when the order is paid.
    async fn a_wordpress_client_creates_a_delivery(platform: &Platform) {
        let http = platform.anonymous_client();
        let entrypoint = WORDPRESS.send(&http, (Method::GET, "/api"), (None, "")).await.expect(200);
        assert_eq!(entrypoint["@context"], "/api/contexts/Entrypoint");
        assert_eq!((&entrypoint["@id"], &entrypoint["@type"]), (&json!("/api"), &json!("Entrypoint")));
        let settings = WORDPRESS
            .send(&http, (Method::GET, "/api/settings"), (None, ""))
            .await
            .expect(200);
        assert_eq!(settings["country"], "FR");

        let token = token(platform, "Basic", "deliveries").await;
        let me = WORDPRESS.get(&http, &token, "/api/me").await;
        let store = WORDPRESS.get(&http, &token, text(&me["store"])).await;
        let time_slot = WORDPRESS.get(&http, &token, text(&store["timeSlot"])).await;
        let hours = time_slot["openingHoursSpecification"].as_array().unwrap();
        assert!(!hours.is_empty());
        for hours in hours {
            assert_eq!(hours["@type"], "OpeningHoursSpecification");
            assert!(text(&hours["opens"]) < text(&hours["closes"]), "{hours}");
            assert!(!hours["dayOfWeek"].as_array().unwrap().is_empty());
        }
        let path = format!("{}/choices", text(&store["timeSlot"]));
        let choices = WORDPRESS.get(&http, &token, &path).await;
        let draft = json!({
            "dropoff": {
                "address": {
                    "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                    "description": "",
                    "contactName": "Zoé Müller",
                    "telephone": "06 12 34 56 78",
                },
                "timeSlot": choices["choices"][0]["value"],
                "comments": "Order #42",
                "weight": 1500,
                "metadata": [],
            },
        });
        let response = WORDPRESS.post(&http, &token, "/api/deliveries", &draft).await;

        assert_eq!(response.header("content-type"), "application/ld+json; charset=utf-8");
        let delivery = response.expect(201);
        let dropoff = &delivery["dropoff"];
        assert_eq!(dropoff["@id"], format!("/api/tasks/{}", text(&dropoff["id"])));
        assert_eq!(dropoff["address"]["telephone"], "+33612345678");
        assert_eq!(dropoff["address"]["contactName"], "Zoé Müller");
        assert_eq!(dropoff["address"]["description"], Value::Null);
        assert_eq!(dropoff["comments"], "Order #42");
        assert!(text(&delivery["trackingUrl"]).starts_with(&platform.base_url));
        let read = WORDPRESS.get(&http, &token, text(&delivery["@id"])).await;
        assert_eq!(read, delivery);
    }

    /// Empty PHP form fields are `""`, `false` or `[]`; times use the old member names.
    async fn a_prestashop_client_creates_a_delivery(platform: &Platform) {
        let http = platform.anonymous_client();
        let token = token(platform, "basic", "tasks%20deliveries").await;
        let draft = json!({
            "pickup": { "address": "", "timeSlot": "" },
            "dropoff": {
                "address": {
                    "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                    "telephone": false,
                    "contactName": null,
                },
                "doneBefore": "2020-04-03 13:00",
                "doneAfter": "2020-04-03 11:30",
                "timeSlot": "",
                "tags": "cold fragile",
                "packages": [],
            },
        });

        let delivery = PRESTASHOP.post(&http, &token, "/api/deliveries", &draft).await.expect(201);

        let dropoff = &delivery["dropoff"];
        for (old, new, time) in [
            ("doneAfter", "after", "2020-04-03T11:30:00+02:00"),
            ("doneBefore", "before", "2020-04-03T13:00:00+02:00"),
        ] {
            assert_eq!((&dropoff[old], &dropoff[new]), (&json!(time), &json!(time)));
        }
        assert_eq!(dropoff["tags"], json!(["cold", "fragile"]));
        assert_eq!(dropoff["address"]["telephone"], Value::Null);
        assert_eq!(
            delivery["pickup"]["address"]["streetAddress"],
            "24 Rue de la Paix, 75002 Paris"
        );
        let task = PRESTASHOP.get(&http, &token, text(&dropoff["@id"])).await;
        assert_eq!(task["status"], "TODO");
    }

    /// Calculates a price, creates the delivery and registers a webhook; reads errors from
    /// `hydra:description` or `message`.
    async fn an_sdk_client_creates_a_delivery(platform: &Platform) {
        let http = platform.anonymous_client();
        let token = token(platform, "Basic", "tasks+deliveries").await;
        let draft = json!({
            "pickup": {
                "address": { "streetAddress": "44 Rue de Rivoli", "latLng": [48.857_3, 2.352_0] },
                "before": "tomorrow 12:00",
            },
            "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" },
        });

        let path = "/api/retail_prices/calculate?tax=excluded";
        let price = SDK.post(&http, &token, path, &draft).await.expect(200);
        let created = SDK.post(&http, &token, "/api/deliveries", &draft).await;
        let subscription = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/hook" });
        let webhook = SDK.post(&http, &token, "/api/webhooks", &subscription).await.expect(201);
        let rejected = SDK.post(&http, &token, "/api/deliveries", &json!({ "dropoff": {} })).await;
        let unknown_client = http
            .request_token(&delivery::Credentials {
                api_key: "unknown".to_owned(),
                api_secret: "wrong".to_owned(),
            }, &[("grant_type", "client_credentials")])
            .await;

        assert_eq!(
            (&price["amount"], &price["tax"]),
            (&json!(416), &json!({ "amount": 83, "included": false }))
        );
        assert_eq!(created.header("content-type"), "application/json");
        let delivery = created.expect(201);
        assert_eq!(delivery["@type"], "http://schema.org/ParcelDelivery");
        assert_eq!(webhook["secret"].as_str().unwrap().len(), 44);
        assert_eq!(rejected.status, 400);
        assert_eq!(rejected.header("content-type"), "application/json");
        assert_eq!(
            rejected.json["hydra:description"],
            "dropoff.before: is required, unless timeSlot is given\n\
             dropoff.address: is required: a postal address, or an object with streetAddress or \
             latLng"
        );
        assert_eq!(unknown_client.status, 401);
        assert_eq!(unknown_client.json["message"], unknown_client.json["error_description"]);
    }
}
