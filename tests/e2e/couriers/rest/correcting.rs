//! `PATCH /api/tasks/{id}`: what dispatch corrects.

use hyper::{
    Method,
    header::{CONTENT_TYPE, HeaderValue},
    http::request::Builder,
};
use serde_json::{Value, json};

use super::{Scene, read};
use crate::{
    couriers::now,
    harness::{ApiClient, Mismatches, Platform, Response, UNKNOWN_ID, assertions::json_ld},
};

async fn patch(client: &ApiClient, task: &str, body: &Value) -> Response {
    let request = as_patch(client.request(Method::PATCH, &format!("/api/{task}")));
    client.send(request, body.to_string()).await
}

fn as_patch(mut request: Builder) -> Builder {
    let media_type = HeaderValue::from_static("application/merge-patch+json");
    request
        .headers_mut()
        .unwrap()
        .insert(CONTENT_TYPE, media_type);
    request
}

on_both_databases! {
    async fn the_members_of_a_body_are_changed_and_null_removes_a_text(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.dropoff;
        let before = read(&scene.desk, task).await;
        platform.advance(jiff::SignedDuration::from_mins(1));

        let body = json!({ "telephone": "06 12 34 56 78", "description": "Code 12", "comments": "Fragile" });
        let corrected = json_ld(&patch(&scene.desk, task, &body).await, 200);

        let mut expected = before.clone();
        expected["comments"] = json!("Fragile");
        expected["address"]["telephone"] = json!("+33612345678");
        expected["address"]["description"] = json!("Code 12");
        expected["address"]["@id"] = corrected["address"]["@id"].clone();
        expected["updatedAt"] = corrected["updatedAt"].clone();
        assert_eq!(corrected, expected);
        assert_ne!(corrected["address"]["@id"], before["address"]["@id"]);
        assert_eq!(read(&scene.desk, task).await, expected);

        let body = json!({ "description": null, "occurredAt": "2020-04-02T11:00:30+02:00" });
        let removed = json_ld(&patch(&scene.desk, task, &body).await, 200);

        expected["address"]["description"] = before["address"]["description"].clone();
        expected["address"]["@id"] = removed["address"]["@id"].clone();
        expected["updatedAt"] = removed["updatedAt"].clone();
        assert_eq!(removed, expected);
        let history = scene.board.history(task).await;
        let [.., first, second] = &history[..] else {
            panic!("{history:?}");
        };
        assert_eq!([&*first.event, &*second.event], ["task:updated"; 2]);
        assert_eq!(first.occurred_time, now(platform));
        let reported = second.occurred_time.map(|occurred| occurred.seconds);
        assert_eq!(reported, Some(1_585_818_030));
    }

    async fn a_wrong_correction_is_refused_with_all_that_is_wrong(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.dropoff;
        let before = read(&scene.desk, task).await;
        let mut mismatches = Mismatches::default();
        for (body, paths) in [
            (json!({}), vec![""]),
            (json!({ "weight": 5 }), vec![""]),
            (json!([1]), vec![""]),
            (json!({ "comments": 5, "telephone": "0612", "sentAt": "now" }), vec!["comments", "sentAt", "telephone"]),
            (json!({ "description": "x".repeat(5_001), "telephone": [] }), vec!["description", "telephone"]),
        ] {
            let refused = patch(&scene.desk, task, &body).await;
            let mut found = refused.violation_paths();
            found.sort_unstable();
            mismatches.check(body.to_string(), (refused.status, &found) == (400, &paths), refused.json.to_string());
        }
        for (client, status) in [(&scene.shop, 403), (&scene.phone, 403)] {
            let refused = patch(client, task, &json!({ "comments": "x" })).await;
            mismatches.check_error("without the scope dispatch".to_owned(), &refused, status);
        }
        let unknown = format!("tasks/{UNKNOWN_ID}");
        mismatches.check_error("an unknown task".to_owned(), &patch(&scene.desk, &unknown, &json!({ "comments": "x" })).await, 404);
        let post = as_patch(scene.desk.request(Method::POST, "/api/incidents"));
        mismatches.check_error("another method".to_owned(), &scene.desk.send(post, "{}").await, 415);
        mismatches.assert_none();
        assert_eq!(read(&scene.desk, task).await, before);
    }

    async fn a_correction_with_a_key_is_made_once(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.dropoff;
        let send = async |comments: &str| {
            let request = scene.desk.request(Method::PATCH, &format!("/api/{task}"));
            let request = request.header("idempotency-key", "a key");
            scene.desk.send(request, json!({ "comments": comments }).to_string()).await
        };
        let first = json_ld(&send("Fragile").await, 200);
        json_ld(&patch(&scene.desk, task, &json!({ "comments": "Ring twice" })).await, 200);

        let repeated = send("Fragile").await;

        assert_eq!(json_ld(&repeated, 200), first);
        assert_eq!(repeated.header("idempotent-replayed"), "true");
        assert_eq!(read(&scene.desk, task).await["comments"], "Ring twice");
        assert_eq!(send("Other").await.status, 422);
    }
}
