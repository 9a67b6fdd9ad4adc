//! `GET /api/tasks/{id}` (specification, "Task") and `PUT /api/tasks/{id}/done`.

use http::Method;
use proto::{CompleteTaskRequest, GetTaskRequest, Task, task};
use serde_json::json;

use crate::harness::{
    Platform,
    samples::{ID, NOON, instant, task, task_json},
};

#[tokio::test]
async fn a_task_has_all_its_members() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Dropoff));

    let reply = platform.client.get(&format!("/api/tasks/{ID}")).await;

    let mut expected = task_json("DROPOFF");
    expected["@context"] = json!("/api/contexts/Task");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), expected);
    assert_eq!(
        platform.core.received::<GetTaskRequest>().name,
        format!("tasks/{ID}")
    );
}

#[tokio::test]
async fn a_completed_task_is_done() {
    for (content_type, body) in [
        (Some("application/ld+json"), "{}"),
        (Some("application/json"), "{\"unknown\": 1}"),
        (Some("text/plain"), ""),
        (None, ""),
    ] {
        let platform = Platform::start().await;
        platform.core.will_respond(Task {
            status: task::Status::Done.into(),
            complete_time: instant(NOON),
            ..task(task::Kind::Pickup)
        });

        let mut request = platform
            .client
            .request(Method::PUT, &format!("/api/tasks/{ID}/done"));
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let reply = platform.client.send(request, body).await;

        let mut expected = task_json("PICKUP");
        expected["@context"] = json!("/api/contexts/Task");
        expected["status"] = json!("DONE");
        assert_eq!(reply.status, 200, "{body}");
        assert_eq!(reply.json(), expected);
        assert_eq!(
            platform.core.received::<CompleteTaskRequest>().name,
            format!("tasks/{ID}")
        );
    }
}

#[tokio::test]
async fn a_completion_with_a_malformed_body_is_rejected() {
    for (content_type, body, status) in [
        ("application/ld+json", "{", 400),
        ("application/ld+json", "[]", 400),
        ("text/plain", "{}", 415),
    ] {
        let platform = Platform::start().await;

        let request = platform
            .client
            .request(Method::PUT, &format!("/api/tasks/{ID}/done"))
            .header("content-type", content_type);
        let reply = platform.client.send(request, body).await;

        assert_eq!(reply.status, status, "{body}");
        assert!(!platform.core.has_unread_call());
    }
}
