//! `GET /api/tasks/{id}/failure_reasons`.

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{ApiClient, Platform, Response, UNKNOWN_ID, assertions::json_ld, draft, iri};

/// "Reasons".
const CODES: [&str; 21] = [
    "DAMAGED",
    "LOST",
    "LATE",
    "NOT_AT_HOME",
    "CLOSED_STORE",
    "WRONG_ADDR",
    "REFUSED",
    "ITEM_MISSING",
    "INCORRECT_ITEM",
    "WEATHER",
    "VEHICLE_BREAKDOWN",
    "TRAFFIC",
    "ROUTE_ISSUE",
    "ADDRESS_UNREACHABLE",
    "PACKAGING_ISSUE",
    "CUSTOMS_ISSUE",
    "INVENTORY_ISSUE",
    "INSUFFICIENT_FUND",
    "DATA_ERROR",
    "HOLIDAY",
    "OTHER",
];

async fn reasons(client: &ApiClient, task: &Value, language: &str) -> Response {
    let path = format!("{}/failure_reasons", iri(task));
    let request = client.request(Method::GET, &path);
    let request = request.header("accept-language", language);
    client.send(request, "").await
}

on_both_databases! {
    /// "`hydra:member[]` of `{code, description}` in the reader's language."
    async fn the_reasons_of_a_failure_are_listed_in_the_readers_language(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;

        for (language, other) in [
            ("en", "Another reason"),
            ("fr", "Autre raison"),
            ("de", "Ein anderer Grund"),
            ("es", "Otro motivo"),
            ("it", "Altro motivo"),
            ("nl", "Een andere reden"),
        ] {
            let response = reasons(&client, &delivery["dropoff"], language).await;

            assert_eq!(response.header("content-language"), language);
            let mut vary = response.headers.get_all("vary").iter();
            assert!(vary.any(|name| name == "accept-language"), "{language}");
            let listed = json_ld(&response, 200);
            let members = listed["hydra:member"].as_array().unwrap();
            let codes: Vec<_> = members.iter().map(|member| member["code"].as_str().unwrap()).collect();
            assert_eq!(codes, CODES);
            let expected = json!({"@type": "FailureReason", "code": "OTHER", "description": other});
            assert_eq!(members[20], expected);
        }
    }

    async fn the_reasons_of_a_task_are_for_those_who_may_read_it(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let board = platform.dispatch_board().await;
        let delivery = client.create_delivery(draft()).await;
        let unknown = json!({"@id": format!("/api/tasks/{UNKNOWN_ID}")});

        for (reader, task, status) in [
            (&client, &delivery["pickup"], 200),
            (&board, &delivery["pickup"], 200),
            (&other, &delivery["pickup"], 404),
            (&client, &unknown, 404),
            (&platform.anonymous_client(), &delivery["pickup"], 401),
        ] {
            assert_eq!(reasons(reader, task, "en").await.status, status);
        }
    }
}
