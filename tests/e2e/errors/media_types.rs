//! What is sent and what is accepted: JSON-LD or JSON, else 406 and 415.

use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::json;

use super::{UNUSED, bearer, iri, order};
use crate::harness::{Database, Faults, Platform};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_ld_is_answered_to_who_accepts_it_and_406_to_who_does_not() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(order()).await;
    let expected = client.get(iri(&delivery)).await.expect(200);
    let json_ld = "application/ld+json; charset=utf-8";
    let mut faults = Faults::default();

    for (accept, content_type) in [
        (None, json_ld),
        (Some("*/*"), json_ld),
        (Some("application/*"), json_ld),
        (Some("application/ld+json"), json_ld),
        (Some("Application/LD+JSON"), json_ld),
        (Some("application/ld+json; charset=utf-8"), json_ld),
        (Some("text/html, application/xhtml+xml, */*;q=0.8"), json_ld),
        (Some("text/html;q=0.9,application/ld+json;q=0.1"), json_ld),
        (Some("application/json, application/ld+json"), json_ld),
        (Some("application/ld+json;q=0.9, */*;q=0.1"), json_ld),
        (Some("application/json"), "application/json"),
        (
            Some("application/json;q=0.5, text/html"),
            "application/json",
        ),
        (
            Some("application/ld+json;q=0.1, application/json"),
            "application/json",
        ),
        (
            Some("application/ld+json;q=0, application/json"),
            "application/json",
        ),
        (Some("application/ld+json;q=0, */*"), "application/json"),
    ] {
        let mut request =
            Request::get(client.url(iri(&delivery))).header(AUTHORIZATION, bearer(&client));
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        let answer = client.send(request, "").await;
        let case = format!("Accept: {accept:?}");
        faults.equal(&case, answer.status, 200);
        faults.equal(&case, &answer.json, &expected);
        let got = answer.header("content-type");
        // Which of two that are liked equally is not said.
        let either = accept == Some("application/json, application/ld+json")
            && got.starts_with("application/json");
        faults.holds(case, got.starts_with(content_type) || either, got);
    }
    for accept in [
        "text/html",
        "application/xml, text/*;q=0.5",
        "application/problem+json",
        "*/*;q=0",
        "application/ld+json;q=0, application/json;q=0",
        "image/png",
    ] {
        for (method, path, body) in [
            (Method::GET, iri(&delivery), String::new()),
            (Method::POST, "/api/deliveries", order().to_string()),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(client.url(path))
                .header(AUTHORIZATION, bearer(&client))
                .header(CONTENT_TYPE, "application/ld+json")
                .header(ACCEPT, accept);
            let answer = client.send(request, body).await;
            let case = format!("Accept: {accept}");
            if accept == "application/problem+json" {
                faults.equal(case, answer.status, 406);
            } else {
                faults.failure(case, &answer, 406);
            }
        }
    }
    for accept in [
        "application/problem+json, application/ld+json;q=0.5",
        "application/problem+json, */*;q=0.1",
    ] {
        let request = Request::get(client.url(&format!("/api/tasks/{UNUSED}")))
            .header(AUTHORIZATION, bearer(&client))
            .header(ACCEPT, accept);
        let answer = client.send(request, "").await;
        faults.equal(accept, answer.status, 404);
        let content_type = answer.header("content-type");
        faults.holds(
            accept,
            content_type.starts_with("application/problem+json"),
            content_type,
        );
        faults.equal(accept, &answer.json["@type"], &json!("hydra:Error"));
    }

    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_json_ld_or_json_is_415() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let webhook = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/" });
    let mut faults = Faults::default();

    for (path, body, success) in [
        ("/api/deliveries", order(), 201),
        ("/api/retail_prices/calculate", order(), 200),
        ("/api/webhooks", webhook, 201),
    ] {
        for (content_type, status) in [
            (Some("application/ld+json"), success),
            (Some("application/ld+json; charset=utf-8"), success),
            (Some("Application/LD+JSON;Charset=UTF-8"), success),
            (Some("application/json"), success),
            (Some("application/json;charset=UTF-8"), success),
            (Some("application/x-www-form-urlencoded"), 415),
            (Some("text/plain"), 415),
            (Some("text/json"), 415),
            (Some("application/xml"), 415),
            (Some("application/ld+jsonx"), 415),
            (Some("application/merge-patch+json"), 415),
            (Some("multipart/form-data; boundary=a"), 415),
            (Some("nonsense"), 415),
            (Some(""), 415),
            (None, 415),
        ] {
            let mut request =
                Request::post(client.url(path)).header(AUTHORIZATION, bearer(&client));
            if let Some(content_type) = content_type {
                request = request.header(CONTENT_TYPE, content_type);
            }
            let answer = client.send(request, body.to_string()).await;
            let case = format!("{path} {content_type:?}");
            match status {
                415 => faults.failure(case, &answer, 415),
                _ => faults.equal(case, answer.status, status),
            }
        }
    }
    // "GET requests may carry a Content-Type; ignore it."
    for content_type in [
        "application/ld+json",
        "text/plain",
        "nonsense",
        "application/x-www-form-urlencoded",
    ] {
        let request = Request::get(client.url("/api/time_slots/choices"))
            .header(AUTHORIZATION, bearer(&client))
            .header(CONTENT_TYPE, content_type);
        let answer = client.send(request, "").await;
        faults.equal(format!("GET {content_type}"), answer.status, 200);
    }

    faults.none();
    platform.stop().await;
}
