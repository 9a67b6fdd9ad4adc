//! Media types of requests and responses: JSON-LD or JSON, otherwise 415 and 406.

use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::json;

use super::{UNKNOWN_ID, bearer, draft, iri};
use crate::harness::{Database, Mismatches, Platform};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_json_ld_or_json_if_accepted_and_406_otherwise() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(draft()).await;
    let expected = client.get(iri(&delivery)).await.expect(200);
    let json_ld = "application/ld+json; charset=utf-8";
    let mut mismatches = Mismatches::default();

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
        let response = client.send(request, "").await;
        let case = format!("Accept: {accept:?}");
        mismatches.check_eq(&case, response.status, 200);
        mismatches.check_eq(&case, &response.json, &expected);
        let actual = response.header("content-type");
        // The specification does not say which of two equally preferred types is chosen.
        let either = accept == Some("application/json, application/ld+json")
            && actual.starts_with("application/json");
        mismatches.check(case, actual.starts_with(content_type) || either, actual);
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
            (Method::POST, "/api/deliveries", draft().to_string()),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(client.url(path))
                .header(AUTHORIZATION, bearer(&client))
                .header(CONTENT_TYPE, "application/ld+json")
                .header(ACCEPT, accept);
            let response = client.send(request, body).await;
            let case = format!("Accept: {accept}");
            // `check_error` requires JSON-LD, but this error has the accepted media type.
            if accept == "application/problem+json" {
                mismatches.check_eq(case, response.status, 406);
            } else {
                mismatches.check_error(case, &response, 406);
            }
        }
    }
    for accept in [
        "application/problem+json, application/ld+json;q=0.5",
        "application/problem+json, */*;q=0.1",
    ] {
        let request = Request::get(client.url(&format!("/api/tasks/{UNKNOWN_ID}")))
            .header(AUTHORIZATION, bearer(&client))
            .header(ACCEPT, accept);
        let response = client.send(request, "").await;
        mismatches.check_eq(accept, response.status, 404);
        let content_type = response.header("content-type");
        mismatches.check(
            accept,
            content_type.starts_with("application/problem+json"),
            content_type,
        );
        mismatches.check_eq(accept, &response.json["@type"], &json!("hydra:Error"));
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_neither_json_ld_nor_json_is_415() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let webhook = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/" });
    let mut mismatches = Mismatches::default();

    for (path, body, success) in [
        ("/api/deliveries", draft(), 201),
        ("/api/retail_prices/calculate", draft(), 200),
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
            let response = client.send(request, body.to_string()).await;
            let case = format!("{path} {content_type:?}");
            match status {
                415 => mismatches.check_error(case, &response, 415),
                _ => mismatches.check_eq(case, response.status, status),
            }
        }
    }
    // A GET request may have a `Content-Type`, which is ignored.
    for content_type in [
        "application/ld+json",
        "text/plain",
        "nonsense",
        "application/x-www-form-urlencoded",
    ] {
        let request = Request::get(client.url("/api/time_slots/choices"))
            .header(AUTHORIZATION, bearer(&client))
            .header(CONTENT_TYPE, content_type);
        let response = client.send(request, "").await;
        mismatches.check_eq(format!("GET {content_type}"), response.status, 200);
    }

    mismatches.assert_none();
    platform.stop().await;
}
