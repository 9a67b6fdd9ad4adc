//! Resources and methods: 404 if unknown or not the caller's, 405 for unsupported methods; the
//! entrypoint.

use hyper::Method;
use serde_json::{Value, json};

use super::{UNKNOWN_ID, draft, iri};
use crate::harness::{Database, Mismatches, Platform, Response, WebhookReceiver, deliver, token};

on_both_databases! {
    async fn another_stores_resource_is_404_exactly_like_an_unknown_one(platform: &Platform) {
        let owner = platform.client().await;
        let other = platform.new_store_client().await;
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let credentials = operator.create_client(&platform.store, &scopes).await;
        let other_client = platform.client_for(&credentials, &scopes).await;
        let delivery = owner.create_delivery(draft()).await;
        let price = owner.post("/api/retail_prices/calculate", draft()).await.expect(200);
        let altered_price = token::altered(iri(&price), iri(&price).len() - 20);
        let unknown = |collection: &str| format!("/api/{collection}/{UNKNOWN_ID}");
        let mut mismatches = Mismatches::default();

        for (method, path, unknown_path) in [
            (Method::GET, iri(&delivery), unknown("deliveries")),
            (Method::GET, iri(&delivery["pickup"]), unknown("tasks")),
            (Method::GET, iri(&delivery["dropoff"]), unknown("tasks")),
            (Method::GET, iri(&price), altered_price),
        ] {
            let case = format!("{method} {path:.60}");
            let send = |path: &str| other.send(other.request(method.clone(), path), "");
            let (foreign, unknown) = (send(path).await, send(&unknown_path).await);
            mismatches.check_error(&case, &foreign, 404);
            let ids = [path, &unknown_path].map(|path| path.rsplit('/').next().unwrap());
            mismatches.check_eq(&case, without_ids(&foreign, ids[0]), without_ids(&unknown, ids[1]));
        }

        // They belong to the store.
        for path in [iri(&delivery), iri(&delivery["pickup"]), iri(&price)] {
            mismatches.check_eq(path, other_client.get(path).await.status, 200);
        }
        mismatches.assert_none();
    }

    async fn another_clients_webhook_and_its_notifications_are_404_exactly_like_unknown_ones(
        platform: &Platform
    ) {
        let owner = platform.client().await;
        let courier = platform.courier().await;
        let operator = platform.operator().await;
        let credentials = operator.create_client(&platform.store, &["tasks"]).await;
        let others = [
            platform.new_store_client().await,
            platform.client_for(&credentials, &["tasks"]).await,
        ];
        let receiver = WebhookReceiver::start().await;
        let webhook = owner.create_webhook("delivery.completed", receiver.url()).await;
        deliver(&owner, &courier).await;
        receiver.next_notification().await;
        let notifications = format!("{}/notifications", iri(&webhook));
        let delivered = |page: Value| {
            let newest = page["hydra:member"].get(0)?;
            (newest["state"] == "delivered").then(|| newest.clone())
        };
        let notification = owner.wait_until(&notifications, delivered).await;
        let webhook_read = owner.get(iri(&webhook)).await.expect(200);
        let since = r#"{ "since": "2020-04-02T00:00:00Z" }"#;
        let mut mismatches = Mismatches::default();

        for (method, resource, action, body) in [
            (Method::GET, &webhook, "", ""),
            (Method::DELETE, &webhook, "", ""),
            (Method::GET, &webhook, "/notifications", ""),
            (Method::POST, &webhook, "/disable", "{}"),
            (Method::POST, &webhook, "/enable", "{}"),
            (Method::POST, &webhook, "/rotate_secret", "{}"),
            (Method::POST, &webhook, "/confirm_secret", "{}"),
            (Method::POST, &webhook, "/test", "{}"),
            (Method::POST, &webhook, "/recover", since),
            (Method::GET, &notification, "", ""),
            (Method::POST, &notification, "/resend", "{}"),
        ] {
            let (collection, id) = iri(resource).rsplit_once('/').unwrap();
            for (client, id) in [(&others[0], id), (&others[1], id), (&owner, UNKNOWN_ID)] {
                let [path, unknown] = [id, UNKNOWN_ID].map(|id| format!("{collection}/{id}{action}"));
                let case = format!("{method} {path}");
                let send = |path: &str| client.send(client.request(method.clone(), path), body);
                let (foreign, unknown) = (send(&path).await, send(&unknown).await);
                mismatches.check_error(&case, &foreign, 404);
                mismatches.check_eq(&case, without_ids(&foreign, id), without_ids(&unknown, UNKNOWN_ID));
            }
        }
        assert_eq!(owner.get(iri(&webhook)).await.expect(200), webhook_read);

        // Nothing was sent, and no secret added.
        let delivery = deliver(&owner, &courier).await;
        let next = receiver.next_notification().await;
        assert_eq!(next.json()["data"]["object"], delivery);
        assert_eq!(next.header("webhook-signature").split(' ').count(), 1);
        assert!(next.has_standard_signature(webhook["secret"].as_str().unwrap()));

        owner.delete(iri(&webhook)).await.expect(204);
        for (method, path) in [
            (Method::GET, iri(&notification).to_owned()),
            (Method::POST, format!("{}/test", iri(&webhook))),
        ] {
            let deleted = owner.send(owner.request(method, &path), "{}").await;
            mismatches.check_error(path, &deleted, 404);
        }
        mismatches.assert_none();
        assert!(receiver.received().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_paths_and_ids_are_404() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(draft()).await;
    let task = iri(&delivery["pickup"]);
    let mut mismatches = Mismatches::default();

    let mut paths: Vec<String> = [
        "/nonsense",
        "/api/nonsense",
        "/api/nonsense/1",
        "/oauth2",
        "/oauth2/",
        "/oauth2/token/x",
        "/oauth2/authorize",
        "/api/tasks",
        "/api/tasks/",
        "/api/time_slots/choices/x",
        "/API/tasks",
        "/api//tasks",
        "/api/../etc/passwd",
        "/api/%2e%2e/%2e%2e/etc/passwd",
        "/api/%00",
        "/api/%ff",
        "/api/%zz",
        "/api/deliveries/",
    ]
    .map(str::to_owned)
    .to_vec();
    let id = task.strip_prefix("/api/tasks/").unwrap();
    for collection in [
        "tasks",
        "deliveries",
        "webhooks",
        "retail_prices",
        "stores",
        "time_slots",
        "images",
    ] {
        let ids = [
            UNKNOWN_ID.to_owned(),
            "1".to_owned(),
            "0".to_owned(),
            "-1".to_owned(),
            "null".to_owned(),
            "x".repeat(5000),
            id.to_uppercase(),
            id.replace('-', ""),
            format!("{{{id}}}").replace('{', "%7B").replace('}', "%7D"),
            format!("{id}%20"),
            format!("{id}%00"),
            format!("{id}/"),
            format!("{id}/x"),
            format!("%2F{id}"),
            "00000000-0000-0000-0000-000000000000".to_owned(),
            "%ff".to_owned(),
            "%F0%9F%9A%B2".to_owned(),
            "'%20OR%201=1".to_owned(),
            "..%2f..%2fdeliveries".to_owned(),
        ];
        paths.extend(ids.iter().map(|id| format!("/api/{collection}/{id}")));
    }
    // The id of a delivery is not the id of a task, and vice versa.
    let delivery_id = iri(&delivery).strip_prefix("/api/deliveries/").unwrap();
    paths.push(format!("/api/tasks/{delivery_id}"));
    paths.push(format!("/api/deliveries/{id}"));
    for path in paths {
        mismatches.check_error(format!("{path:.80}"), &client.get(&path).await, 404);
    }
    mismatches.check_eq("the valid id", client.get(task).await.status, 200);

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsupported_method_is_405_and_allow_lists_the_supported_ones() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(draft()).await;
    let task = iri(&delivery["pickup"]);
    let done = format!("{task}/done");
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    let mut mismatches = Mismatches::default();

    for (path, methods, allowed) in [
        (
            "/oauth2/token",
            &["GET", "PUT", "DELETE", "PATCH"][..],
            &["POST"][..],
        ),
        ("/api", &["POST", "PUT", "DELETE", "BREW"], &["GET"]),
        (
            "/api/deliveries",
            &["PUT", "PATCH", "DELETE", "BREW", "post"],
            &["GET", "POST"],
        ),
        (
            iri(&delivery),
            &["POST", "PUT", "PATCH"],
            &["GET", "DELETE"],
        ),
        (task, &["POST", "PUT", "DELETE"], &["GET", "PATCH"]),
        (&done, &["GET", "POST", "PATCH", "DELETE"], &["PUT"]),
        (
            "/api/retail_prices/calculate",
            &["PUT", "PATCH", "DELETE"],
            &["POST"],
        ),
        (
            "/api/time_slots/choices",
            &["POST", "PUT", "PATCH", "DELETE"],
            &["GET"],
        ),
        (
            "/api/webhooks",
            &["PUT", "PATCH", "DELETE"],
            &["GET", "POST"],
        ),
        (iri(&webhook), &["POST", "PUT", "PATCH"], &["GET", "DELETE"]),
    ] {
        for method in methods {
            let case = format!("{method} {path}");
            let request = client.request(method.parse().unwrap(), path);
            let response = client.send(request, "{}").await;
            mismatches.check_error(&case, &response, 405);
            let listed: Vec<_> = response.header("allow").split(',').map(str::trim).collect();
            let is_expected =
                allowed.iter().all(|allowed| listed.contains(allowed)) && !listed.contains(method);
            mismatches.check(case, is_expected, format!("Allow: {}", listed.join(", ")));
        }
    }
    mismatches.check_eq("unchanged", client.get(iri(&webhook)).await.status, 200);

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entrypoint_is_public_and_names_the_resources() {
    let platform = Platform::start(Database::sqlite()).await;
    let anonymous = platform.anonymous_client();

    let response = anonymous.get("/api").await;

    assert_eq!(
        response.header("content-type"),
        "application/ld+json; charset=utf-8"
    );
    let entrypoint = response.expect(200);
    let mut members = entrypoint.as_object().unwrap().clone();
    assert_eq!(
        members.remove("@context"),
        Some(json!("/api/contexts/Entrypoint"))
    );
    assert_eq!(members.remove("@id"), Some(json!("/api")));
    assert_eq!(members.remove("@type"), Some(json!("Entrypoint")));
    let iris: Vec<_> = members.values().filter_map(Value::as_str).collect();
    assert_eq!(iris.len(), members.len(), "{entrypoint}");
    assert!(
        iris.iter().all(|iri| iri.starts_with("/api/")),
        "{entrypoint}"
    );
    for iri in ["/api/deliveries", "/api/webhooks"] {
        assert!(iris.contains(&iri), "{entrypoint}");
    }
    platform.stop().await;
}

/// The body without the requested id and the request id, which must differ.
fn without_ids(response: &Response, id: &str) -> String {
    let mut json = response.json.clone();
    json["requestId"].take();
    json.to_string().replace(id, "…")
}
