//! `X-Request-Id` of every response, and the page behind the `type` of every error.

use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::json;

use super::{UNKNOWN_ID, bearer, draft, iri};
use crate::harness::{Database, Mismatches, Platform};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_has_a_request_id_and_every_error_type_explains_its_code() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let anonymous = platform.anonymous_client();
    let delivery = client.create_delivery(draft()).await;
    let mut mismatches = Mismatches::default();
    let unknown = format!("/api/tasks/{UNKNOWN_ID}");

    let responses = [
        ("created", client.post("/api/deliveries", draft()).await),
        ("read", client.get(iri(&delivery)).await),
        ("public", anonymous.get("/api").await),
        ("invalid", client.post("/api/deliveries", json!({})).await),
        ("unauthenticated", anonymous.get(&unknown).await),
        (
            "forbidden",
            client
                .put(&format!("{}/done", iri(&delivery["pickup"])), json!({}))
                .await,
        ),
        ("not found", client.get(&unknown).await),
        ("unknown path", client.get("/api/nonsense").await),
        (
            "unknown method",
            client
                .send(client.request(Method::PATCH, "/api/deliveries"), "{}")
                .await,
        ),
        (
            "not acceptable",
            client
                .send(
                    Request::get(client.url("/api")).header(ACCEPT, "text/css"),
                    "",
                )
                .await,
        ),
        (
            "unsupported",
            client
                .send(
                    Request::post(client.url("/api/deliveries"))
                        .header(AUTHORIZATION, bearer(&client))
                        .header(CONTENT_TYPE, "text/css"),
                    "a {}",
                )
                .await,
        ),
    ];
    let mut ids: Vec<_> = responses
        .iter()
        .map(|(_, response)| response.header("x-request-id"))
        .collect();
    mismatches.check(
        "ids",
        ids.iter().all(|id| !id.is_empty()),
        format!("{ids:?}"),
    );
    ids.sort_unstable();
    ids.dedup();
    mismatches.check_eq("distinct ids", ids.len(), responses.len());
    for (case, response) in responses
        .iter()
        .filter(|(_, response)| response.status >= 400)
    {
        let iri = response.json["type"].as_str().unwrap();
        let path = iri.strip_prefix(&platform.base_url).unwrap_or(iri);
        let request = Request::get(anonymous.url(path)).header(ACCEPT, "*/*");
        let explanation = anonymous.send(request, "").await;
        mismatches.check_eq(format!("{case}: {iri}"), explanation.status, 200);
        mismatches.check(case, !explanation.body.is_empty(), "no explanation");
    }

    mismatches.assert_none();
    platform.stop().await;
}
