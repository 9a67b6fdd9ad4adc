//! What every answer carries, and what every failure's `type` leads to.

use hyper::{
    Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::json;

use super::{UNUSED, bearer, iri, order};
use crate::harness::{Database, Faults, Platform};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_has_a_request_id_and_every_failures_type_explains_its_code() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let stranger = platform.stranger();
    let delivery = client.create_delivery(order()).await;
    let mut faults = Faults::default();
    let unused = format!("/api/tasks/{UNUSED}");

    let answers = [
        ("created", client.post("/api/deliveries", order()).await),
        ("read", client.get(iri(&delivery)).await),
        ("public", stranger.get("/api").await),
        ("invalid", client.post("/api/deliveries", json!({})).await),
        ("unauthenticated", stranger.get(&unused).await),
        (
            "forbidden",
            client
                .put(&format!("{}/done", iri(&delivery["pickup"])), json!({}))
                .await,
        ),
        ("not found", client.get(&unused).await),
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
    let mut ids: Vec<_> = answers
        .iter()
        .map(|(_, answer)| answer.header("x-request-id"))
        .collect();
    faults.holds(
        "ids",
        ids.iter().all(|id| !id.is_empty()),
        format!("{ids:?}"),
    );
    ids.sort_unstable();
    ids.dedup();
    faults.equal("distinct ids", ids.len(), answers.len());
    for (case, answer) in answers.iter().filter(|(_, answer)| answer.status >= 400) {
        let iri = answer.json["type"].as_str().unwrap();
        let path = iri.strip_prefix(&platform.base_url).unwrap_or(iri);
        let request = Request::get(stranger.url(path)).header(ACCEPT, "*/*");
        let explanation = stranger.send(request, "").await;
        faults.equal(format!("{case}: {iri}"), explanation.status, 200);
        faults.holds(case, !explanation.body.is_empty(), "no explanation");
    }

    faults.none();
    platform.stop().await;
}
