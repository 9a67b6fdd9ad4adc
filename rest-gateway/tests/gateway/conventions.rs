//! Conventions of every request: media types, request ids, metadata of calls to core.

use http::Method;
use proto::{GetTaskRequest, task};
use serde_json::json;
use tonic::Code;

use crate::harness::{
    Platform,
    samples::{ID, core_status, delivery, task},
};

fn task_path() -> String {
    format!("/api/tasks/{ID}")
}

#[tokio::test]
async fn a_resource_has_the_media_type_that_was_accepted() {
    let platform = Platform::start().await;
    for (accept, content_type) in [
        ("*/*", "application/ld+json; charset=utf-8"),
        ("", "application/ld+json; charset=utf-8"),
        ("application/ld+json", "application/ld+json; charset=utf-8"),
        ("application/json", "application/json"),
        ("garbage", "application/ld+json; charset=utf-8"),
        (
            "text/html, application/json;q=0.9, */*;q=0.1",
            "application/json",
        ),
    ] {
        platform.core.will_respond(task(task::Kind::Pickup));

        let reply = platform.client.get_accepting(&task_path(), accept).await;

        assert_eq!(reply.status, 200, "{accept}");
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert_eq!(reply.header("vary"), Some("accept"));
        assert_eq!(reply.json()["@type"], "Task");
    }
}

#[tokio::test]
async fn a_request_that_accepts_no_offered_media_type_is_406_and_not_executed() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::POST, "/api/deliveries")
        .header("content-type", "application/ld+json")
        .header("accept", "garbage, text/html, image/*");
    let reply = platform.client.send(request, "{}").await;

    assert_eq!(reply.status, 406);
    assert_eq!(
        reply.header("content-type"),
        Some("application/ld+json; charset=utf-8")
    );
    assert_eq!(reply.error()["code"], "not_acceptable");
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn an_error_is_problem_json_if_that_is_preferred() {
    let platform = Platform::start().await;
    for (accept, content_type) in [
        (
            "application/ld+json;q=0.5, application/problem+json",
            "application/problem+json",
        ),
        (
            "application/ld+json, application/problem+json",
            "application/ld+json; charset=utf-8",
        ),
        ("application/json", "application/json"),
    ] {
        platform
            .core
            .will_fail(core_status(Code::NotFound, "NOT_FOUND", "the reason"));

        let reply = platform.client.get_accepting(&task_path(), accept).await;

        assert_eq!(reply.status, 404, "{accept}");
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert_eq!(reply.error()["detail"], "the reason");
    }
}

#[tokio::test]
async fn a_get_request_may_carry_a_content_type() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Pickup));

    let request = platform
        .client
        .request(Method::GET, &task_path())
        .header("content-type", "text/plain");
    let reply = platform.client.send(request, "ignored").await;

    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn core_receives_the_token_the_request_id_and_the_timeout() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Pickup));

    let request = platform
        .client
        .request(Method::GET, &task_path())
        .header("authorization", "Bearer e30.e30.c2ln")
        .header("x-request-id", "shop-7");
    platform.client.send(request, "").await;

    let (metadata, _) = platform.core.received_with_metadata::<GetTaskRequest>();
    assert_eq!(
        metadata.get("authorization").unwrap(),
        "Bearer e30.e30.c2ln"
    );
    assert_eq!(metadata.get("x-request-id").unwrap(), "shop-7");
    assert!(metadata.get("grpc-timeout").is_some());
}

#[tokio::test]
async fn a_request_without_token_is_forwarded_to_core() {
    let platform = Platform::start().await;
    let status = core_status(Code::Unauthenticated, "TOKEN_MISSING", "none");
    platform.core.will_fail(status);

    let reply = platform.client.get(&task_path()).await;

    let (metadata, _) = platform.core.received_with_metadata::<GetTaskRequest>();
    assert!(metadata.get("authorization").is_none());
    assert_eq!(reply.status, 401);
}

#[tokio::test]
async fn ids_are_decoded_and_forwarded_to_core() {
    let platform = Platform::start().await;
    for (path, name) in [
        ("/api/tasks/a%2Fb", "tasks/a/b"),
        ("/api/tasks/%C3%A9%20", "tasks/é "),
        ("/api/tasks/..", "tasks/.."),
        ("/api/tasks/%00", "tasks/\0"),
    ] {
        platform
            .core
            .will_fail(core_status(Code::NotFound, "NOT_FOUND", "the reason"));

        let reply = platform.client.get(path).await;

        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(platform.core.received::<GetTaskRequest>().name, name);
    }
}

#[tokio::test]
async fn a_well_formed_request_id_is_returned_and_a_malformed_one_replaced() {
    let platform = Platform::start().await;
    for (sent, is_returned) in [
        (vec!["shop-7"], true),
        (vec![ID], true),
        (vec!["two words"], false),
        (vec![""], false),
        (vec!["a", "b"], false),
        (vec![], false),
    ] {
        let mut request = platform.client.request(Method::GET, "/healthz");
        for id in &sent {
            request = request.header("x-request-id", *id);
        }
        let reply = platform.client.send(request, "").await;

        let id = reply.header("x-request-id").unwrap();
        if is_returned {
            assert_eq!(id, sent[0]);
        } else {
            let id = uuid::Uuid::try_parse(id).unwrap();
            assert_eq!(id.get_version_num(), 7, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn a_body_must_be_declared_as_json() {
    let platform = Platform::start().await;
    for (content_type, status) in [
        (Some("application/ld+json"), 201),
        (Some("text/json"), 415),
        (None, 415),
    ] {
        platform.core.will_respond(delivery());

        let mut request = platform.client.request(Method::POST, "/api/deliveries");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let reply = platform.client.send(request, "{}").await;

        assert_eq!(reply.status, status, "{content_type:?}");
        if status == 415 {
            assert_eq!(reply.error()["code"], "unsupported_media_type");
        }
    }
}

#[tokio::test]
async fn a_compressed_body_is_rejected() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::POST, "/api/deliveries")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip");
    let reply = platform.client.send(request, "{}").await;

    assert_eq!(reply.status, 415);
    assert_eq!(
        reply.error()["detail"],
        json!("the body must not be compressed")
    );
}
