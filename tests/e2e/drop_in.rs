//! The programs that shops run already, unmodified: each request with the headers and members
//! that such a program sends, each answer with those that it reads.

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Value, json};

use crate::harness::{Answer, ApiClient, Platform};

/// How a program speaks HTTP.
struct Dialect {
    accept: Option<&'static str>,
    /// Of requests without a body too.
    content_type: &'static str,
}

const WORDPRESS: Dialect = Dialect {
    accept: Some("*/*"),
    content_type: "application/ld+json",
};

const PRESTASHOP: Dialect = Dialect {
    accept: None,
    content_type: "application/ld+json",
};

const SDK: Dialect = Dialect {
    accept: Some("application/json"),
    content_type: "application/json",
};

impl Dialect {
    async fn send(
        &self,
        client: &ApiClient,
        (method, path): (Method, &str),
        (authorization, body): (Option<&str>, &str),
    ) -> Answer {
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

    async fn post(&self, client: &ApiClient, token: &str, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send(client, (Method::POST, path), (Some(token), &body))
            .await
    }
}

/// Asks for a token as these programs do, with a scheme as some of them write it.
async fn token(platform: &Platform, scheme: &str, scope: &str) -> String {
    let credentials = &platform.demo_client;
    let basic = format!("{}:{}", credentials.api_key, credentials.api_secret);
    let stranger = platform.stranger();
    let request = Request::post(stranger.url("/oauth2/token"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(
            AUTHORIZATION,
            format!("{scheme} {}", BASE64_STANDARD.encode(basic)),
        );
    let body = format!("grant_type=client_credentials&scope={scope}");
    let granted = stranger.send(request, body).await.expect(200);
    assert_eq!(granted["token_type"], "Bearer");
    assert_eq!(granted["expires_in"], 3600);
    format!("Bearer {}", granted["access_token"].as_str().unwrap())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

on_both_databases! {
    /// It looks whether this is such a platform, finds the store's time slot, offers its choices
    /// at the checkout, and creates the delivery when the order is paid.
    async fn a_wordpress_shop_delivers(platform: &Platform) {
        let http = platform.stranger();
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
        let order = json!({
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
        let answer = WORDPRESS.post(&http, &token, "/api/deliveries", &order).await;

        assert_eq!(answer.header("content-type"), "application/ld+json; charset=utf-8");
        let delivery = answer.expect(201);
        let dropoff = &delivery["dropoff"];
        assert_eq!(dropoff["@id"], format!("/api/tasks/{}", text(&dropoff["id"])));
        assert_eq!(dropoff["address"]["telephone"], "+33612345678");
        assert_eq!(dropoff["address"]["contactName"], "Zoé Müller");
        assert_eq!(dropoff["address"]["description"], Value::Null);
        assert_eq!(dropoff["comments"], "Order #42");
        assert_eq!(delivery["trackingUrl"], Value::Null);
        let read = WORDPRESS.get(&http, &token, text(&delivery["@id"])).await;
        assert_eq!(read, delivery);
    }

    /// Empty fields of a PHP form are `""`, `false` or `[]`; times have their old names.
    async fn a_prestashop_shop_delivers(platform: &Platform) {
        let http = platform.stranger();
        let token = token(platform, "basic", "tasks%20deliveries").await;
        let order = json!({
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

        let delivery = PRESTASHOP.post(&http, &token, "/api/deliveries", &order).await.expect(201);

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

    /// It asks for a price, creates what was priced, subscribes and looks after what it sent; and
    /// reads why something failed from `hydra:description`, or from `message`.
    async fn the_sdks_program_delivers(platform: &Platform) {
        let http = platform.stranger();
        let token = token(platform, "Basic", "tasks+deliveries").await;
        let order = json!({
            "pickup": {
                "address": { "streetAddress": "44 Rue de Rivoli", "latLng": [48.857_3, 2.352_0] },
                "before": "tomorrow 12:00",
            },
            "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" },
        });

        let path = "/api/retail_prices/calculate?tax=excluded";
        let price = SDK.post(&http, &token, path, &order).await.expect(200);
        let created = SDK.post(&http, &token, "/api/deliveries", &order).await;
        let subscription = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/hook" });
        let webhook = SDK.post(&http, &token, "/api/webhooks", &subscription).await.expect(201);
        let refused = SDK.post(&http, &token, "/api/deliveries", &json!({ "dropoff": {} })).await;
        let unknown = http
            .ask_for_token(&delivery::Credentials {
                api_key: "nobody".to_owned(),
                api_secret: "nothing".to_owned(),
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
        assert_eq!(refused.status, 400);
        assert_eq!(refused.header("content-type"), "application/json");
        assert_eq!(
            refused.json["hydra:description"],
            "dropoff.before: is required, or timeSlot in its place\n\
             dropoff.address: is required: a postal address, or an object with streetAddress or \
             latLng"
        );
        assert_eq!(unknown.status, 401);
        assert_eq!(unknown.json["message"], unknown.json["error_description"]);
    }
}
