//! Webhooks, actions on resources, and token requests.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{Database, Documentation, Mismatches, Platform, deliver, iri};

fn any_values() -> Vec<Value> {
    let values = ["{}", "[]", "null", r#""x""#, "1", "true"];
    values.map(|value| value.parse().unwrap()).to_vec()
}

/// Bodies with these JSON values of a member, and bodies without the member.
fn members(name: &str, values: &[&str]) -> Vec<Value> {
    let values = values.iter().map(|value| value.parse::<Value>().unwrap());
    let with = values.map(|value| json!({ name: value }));
    any_values().into_iter().chain(with).collect()
}

fn overlaps() -> Vec<Value> {
    let values = [
        "null", "-1", "0", "604800", "604801", "1.5", "1.0", r#""60""#, "true", "[60]",
    ];
    members("overlap", &values)
}

fn instants() -> Vec<Value> {
    let values = [
        "null",
        r#""""#,
        r#""2020-04-01T00:00:00+02:00""#,
        r#""2020-04-01T00:00:00Z""#,
        r#""2020-04-01""#,
        "1585692000",
    ];
    members("since", &values)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_permits_a_webhook_if_and_only_if_it_is_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let documentation = Documentation::of(&platform.base_url).await;
    let schema = json!({ "$ref": "#/components/schemas/WebhookDraft" });
    let url = |length: usize| format!("http://127.0.0.1:9/{:a<1$}", "", length - 19);
    let mut mismatches = Mismatches::default();

    for (event, url) in [
        (json!("delivery.completed"), json!("HTTP://127.0.0.1:9/")),
        (json!("delivery.completed"), json!(url(2048))),
        (json!("delivery.completed"), json!(url(2049))),
        (json!("delivery.completed"), json!("")),
        (json!("delivery.completed"), json!(null)),
        (json!("delivery.completed"), json!("ftp://127.0.0.1:9/")),
        (json!("delivery.completed"), json!("/hook")),
        (json!(""), json!(url(30))),
        (json!(null), json!(url(30))),
        (json!("delivery.delivered"), json!(url(30))),
    ] {
        let webhook = json!({ "event": event, "url": url });
        let errors = documentation.errors(&schema, &webhook);
        let response = client.post("/api/webhooks", webhook.clone()).await;
        let case = format!("{webhook:.80}: {errors:?}");
        mismatches.check_eq(case, response.status == 201, errors.is_empty());
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_permits_the_body_of_an_action_if_and_only_if_it_is_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let board = platform.dispatch_board().await;
    let documentation = Documentation::of(&platform.base_url).await;
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    let delivery = deliver(&client, &platform.courier().await).await;
    let delivery = client.get(&delivery).await.expect(200);
    let first = |page: Value| page["hydra:member"].get(0).cloned();
    let notifications = format!("{}/notifications", iri(&webhook));
    let notification = client.wait_until(&notifications, first).await;
    let mut mismatches = Mismatches::default();

    for (method, template, resource, bodies) in [
        (
            Method::PUT,
            "/api/tasks/{id}/done",
            &delivery["pickup"],
            any_values(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/rotate_secret",
            &webhook,
            overlaps(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/confirm_secret",
            &webhook,
            any_values(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/recover",
            &webhook,
            instants(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/disable",
            &webhook,
            any_values(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/enable",
            &webhook,
            any_values(),
        ),
        (
            Method::POST,
            "/api/webhooks/{id}/test",
            &webhook,
            any_values(),
        ),
        (
            Method::POST,
            "/api/notifications/{id}/resend",
            &notification,
            any_values(),
        ),
    ] {
        let schema = documentation.request_body(&method, template, "application/ld+json");
        let id = iri(resource).rsplit('/').next().unwrap();
        let path = template.replace("{id}", id);
        let caller = if method == Method::PUT {
            &board
        } else {
            &client
        };
        for body in bodies {
            let errors = documentation.errors(schema, &body);
            let request = caller.request(method.clone(), &path);
            let response = caller.send(request, body.to_string()).await;
            let case = format!("{path} {body}: {errors:?} {}", response.status);
            mismatches.check_eq(case, response.status < 300, errors.is_empty());
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_permits_a_token_request_if_and_only_if_it_is_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.anonymous_client();
    let documentation = Documentation::of(&platform.base_url).await;
    let media_type = "application/x-www-form-urlencoded";
    let schema = documentation.request_body(&Method::POST, "/oauth2/token", media_type);
    let grant = ("grant_type", "client_credentials");
    let mut mismatches = Mismatches::default();

    for form in [
        &[][..],
        &[("grant_type", "")],
        &[("grant_type", "password")],
        &[("grant_type", "CLIENT_CREDENTIALS")],
        &[("scope", "deliveries")],
        &[grant],
        &[grant, ("scope", "")],
        &[grant, ("scope", " ")],
        &[grant, ("scope", "deliveries")],
        &[grant, ("scope", "tasks  deliveries")],
        &[grant, ("scope", " tasks tasks ")],
        &[grant, ("scope", "tasks\tdeliveries")],
        &[grant, ("scope", "\"tasks\"")],
        &[grant, ("scope", "täsks")],
        &[grant, ("scope", "tasks\0")],
        &[grant, ("unknown", "x")],
    ] {
        let instance: Value = form.iter().copied().collect();
        let errors = documentation.errors(schema, &instance);
        let response = client.request_token(&platform.demo_client, form).await;
        let case = format!("{form:?}: {errors:?} {}", response.json);
        mismatches.check_eq(case, response.status == 200, errors.is_empty());
    }

    mismatches.assert_none();
    platform.stop().await;
}
