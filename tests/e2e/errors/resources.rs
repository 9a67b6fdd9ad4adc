//! What there is: 404 for what is not there, or not the caller's; 405 for what cannot be done to
//! it; the entrypoint.

use hyper::Method;
use serde_json::{Value, json};

use super::{UNUSED, iri, order};
use crate::harness::{Answer, Database, Faults, Platform};

on_both_databases! {
    async fn what_is_another_stores_is_404_exactly_like_what_does_not_exist(platform: &Platform) {
        let owner = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let credentials = operator.create_client(&platform.store, &scopes).await;
        let colleague = platform.client_of(&credentials, &scopes).await;
        let delivery = owner.create_delivery(order()).await;
        let price = owner.post("/api/retail_prices/calculate", order()).await.expect(200);
        let webhook = owner.create_webhook("delivery.completed", "http://127.0.0.1:9/").await;
        let altered = altered_token(iri(&price));
        let unused = |collection: &str| format!("/api/{collection}/{UNUSED}");
        let mut faults = Faults::default();

        for (method, path, nothing) in [
            (Method::GET, iri(&delivery), unused("deliveries")),
            (Method::GET, iri(&delivery["pickup"]), unused("tasks")),
            (Method::GET, iri(&delivery["dropoff"]), unused("tasks")),
            (Method::GET, iri(&price), altered),
            (Method::GET, iri(&webhook), unused("webhooks")),
            (Method::DELETE, iri(&webhook), unused("webhooks")),
        ] {
            let case = format!("{method} {path:.60}");
            let send = |path: &str| other.send(other.request(method.clone(), path), "");
            let (theirs, absent) = (send(path).await, send(&nothing).await);
            faults.failure(&case, &theirs, 404);
            faults.equal(&case, without_path(&theirs, path), without_path(&absent, &nothing));
        }

        // Deliveries belong to the store, a webhook to the client that registered it.
        for path in [iri(&delivery), iri(&delivery["pickup"]), iri(&price)] {
            faults.equal(path, colleague.get(path).await.status, 200);
        }
        faults.failure("a colleague's webhook", &colleague.get(iri(&webhook)).await, 404);
        faults.failure("a colleague's webhook", &colleague.delete(iri(&webhook)).await, 404);
        faults.equal("its own", owner.get(iri(&webhook)).await.status, 200);
        faults.none();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_paths_and_ids_are_404() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(order()).await;
    let task = iri(&delivery["pickup"]);
    let mut faults = Faults::default();

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
    ] {
        let ids = [
            UNUSED.to_owned(),
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
    // A delivery's id names no task, and the other way round.
    let of_delivery = iri(&delivery).strip_prefix("/api/deliveries/").unwrap();
    paths.push(format!("/api/tasks/{of_delivery}"));
    paths.push(format!("/api/deliveries/{id}"));
    for path in paths {
        faults.failure(format!("{path:.80}"), &client.get(&path).await, 404);
    }
    faults.equal("the id itself", client.get(task).await.status, 200);

    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_a_path_does_not_know_is_405_and_told_which_it_knows() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(order()).await;
    let task = iri(&delivery["pickup"]);
    let done = format!("{task}/done");
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    let mut faults = Faults::default();

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
        (task, &["POST", "PUT", "PATCH", "DELETE"], &["GET"]),
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
            let answer = client.send(request, "{}").await;
            faults.failure(&case, &answer, 405);
            let told: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
            let is_told =
                allowed.iter().all(|allowed| told.contains(allowed)) && !told.contains(method);
            faults.holds(case, is_told, format!("Allow: {}", told.join(", ")));
        }
    }
    faults.equal("still there", client.get(iri(&webhook)).await.status, 200);

    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entrypoint_is_public_and_names_the_resources() {
    let platform = Platform::start(Database::sqlite()).await;
    let stranger = platform.stranger();

    let answer = stranger.get("/api").await;

    assert_eq!(
        answer.header("content-type"),
        "application/ld+json; charset=utf-8"
    );
    let entrypoint = answer.expect(200);
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

/// The IRI with one character in the middle of its last part changed.
fn altered_token(iri: &str) -> String {
    let middle = iri.len() - 20;
    let other = if &iri[middle..=middle] == "A" {
        "B"
    } else {
        "A"
    };
    format!("{}{other}{}", &iri[..middle], &iri[middle + 1..])
}

/// The body without what must differ: the id asked for and the request's own.
fn without_path(answer: &Answer, path: &str) -> String {
    let mut json = answer.json.clone();
    json["requestId"].take();
    let id = path.rsplit('/').next().unwrap();
    json.to_string().replace(id, "…")
}
