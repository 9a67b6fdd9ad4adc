//! The error responses to each status of core, and to malformed `Authorization` headers.

use http::Method;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::harness::{
    PUBLIC_URL, Platform, Reply,
    samples::{ID, core_status, core_status_with},
};

/// The response to a status of core.
async fn reply_to(status: Status) -> Reply {
    let platform = Platform::start().await;
    platform.core.will_fail(status);

    platform.client.get(&format!("/api/tasks/{ID}")).await
}

pub(crate) fn error_json(status: u16, code: &str, detail: &str) -> Value {
    json!({
        "@context": "/api/contexts/Error",
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": detail,
        "type": format!("{PUBLIC_URL}/errors/{code}"),
        "status": status,
        "detail": detail,
        "code": code,
    })
}

/// The error of a response without `title` and `retryable`, which other tests check.
pub(crate) fn without_title_and_retryable(reply: &Reply) -> Value {
    let mut error = reply.error();
    let members = error.as_object_mut().unwrap();
    assert!(members.remove("title").unwrap().is_string());
    assert!(members.remove("retryable").unwrap().is_boolean());
    error
}

#[tokio::test]
async fn each_status_of_core_has_one_response() {
    const INTERNAL: &str = "something went wrong on our side";
    for (code, reason, status, error_code, detail) in [
        (
            Code::Unauthenticated,
            "TOKEN_MISSING",
            401,
            "token_missing",
            "why",
        ),
        (
            Code::Unauthenticated,
            "TOKEN_INVALID",
            401,
            "token_invalid",
            "why",
        ),
        (
            Code::Unauthenticated,
            "TOKEN_EXPIRED",
            401,
            "token_expired",
            "why",
        ),
        (
            Code::PermissionDenied,
            "INSUFFICIENT_SCOPE",
            403,
            "insufficient_scope",
            "why",
        ),
        (Code::NotFound, "NOT_FOUND", 404, "not_found", "why"),
        (
            Code::FailedPrecondition,
            "TASK_STATE",
            409,
            "task_state",
            "why",
        ),
        (Code::FailedPrecondition, "", 409, "conflict", "why"),
        (Code::AlreadyExists, "CONFLICT", 409, "conflict", "why"),
        (
            Code::ResourceExhausted,
            "TOO_MANY_WEBHOOKS",
            429,
            "too_many_webhooks",
            "why",
        ),
        (
            Code::ResourceExhausted,
            "OVERLOADED",
            503,
            "overloaded",
            "the platform is busy",
        ),
        (
            Code::Unavailable,
            "",
            503,
            "unavailable",
            "the platform cannot be reached right now",
        ),
        (
            Code::Cancelled,
            "",
            503,
            "unavailable",
            "the platform cannot be reached right now",
        ),
        (
            Code::Aborted,
            "",
            503,
            "unavailable",
            "the platform cannot be reached right now",
        ),
        (
            Code::DeadlineExceeded,
            "",
            504,
            "deadline_exceeded",
            "the response was not ready in time",
        ),
        (Code::Internal, "INTERNAL", 500, "internal", INTERNAL),
        (Code::Unknown, "", 500, "internal", INTERNAL),
        (Code::Unimplemented, "", 500, "internal", INTERNAL),
        (Code::DataLoss, "", 500, "internal", INTERNAL),
    ] {
        let reply = reply_to(core_status(code, reason, "why")).await;

        assert_eq!(reply.status, status, "{code:?} {reason}");
        assert_eq!(
            without_title_and_retryable(&reply),
            error_json(status, error_code, detail)
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/ld+json; charset=utf-8")
        );
    }
}

#[tokio::test]
async fn an_error_body_has_all_its_members() {
    let reply = reply_to(core_status(
        Code::NotFound,
        "NOT_FOUND",
        "there is no such task",
    ))
    .await;

    let mut expected = error_json(404, "not_found", "there is no such task");
    expected["title"] = json!("Not found");
    expected["retryable"] = json!(false);
    assert_eq!(reply.error(), expected);
}

#[tokio::test]
async fn an_unknown_code_is_forwarded_with_the_type_of_its_status() {
    let reply = reply_to(core_status(
        Code::FailedPrecondition,
        "SOMETHING_NEW",
        "why",
    ))
    .await;

    let mut expected = error_json(409, "something_new", "why");
    expected["type"] = json!(format!("{PUBLIC_URL}/errors/conflict"));
    assert_eq!(without_title_and_retryable(&reply), expected);
}

#[tokio::test]
async fn an_invalid_argument_without_violations_becomes_one_violation_of_the_whole_body() {
    let reply = reply_to(core_status(Code::InvalidArgument, "", "why")).await;

    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["@type"], "ConstraintViolationList");
    assert_eq!(
        reply.json()["violations"],
        json!([{"propertyPath": "", "message": "why", "code": ""}])
    );
}

/// tonic and proxies send statuses too, without an `ErrorInfo`.
#[tokio::test]
async fn a_status_that_core_did_not_send_is_a_fault_of_the_platform() {
    for code in [
        Code::InvalidArgument,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::FailedPrecondition,
        Code::OutOfRange,
        Code::Unauthenticated,
        Code::Unimplemented,
        Code::Unknown,
    ] {
        let reply = reply_to(Status::new(code, "decoded message length too large")).await;

        assert_eq!(reply.status, 500, "{code:?}");
        assert_eq!(reply.error()["code"], "internal", "{code:?}");
        assert!(!reply.text().contains("decoded"), "{}", reply.text());
    }
}

#[tokio::test]
async fn an_overloaded_proxy_before_core_is_a_temporary_failure() {
    let details = ErrorDetails::with_retry_info(Some(std::time::Duration::from_secs(7)));
    let exhausted = |details| Status::with_error_details(Code::ResourceExhausted, "full", details);
    for (status, seconds) in [
        (Status::resource_exhausted("full"), "1"),
        (exhausted(details), "7"),
    ] {
        let reply = reply_to(status).await;

        assert_eq!(reply.status, 503);
        assert_eq!(reply.error()["code"], "overloaded");
        assert_eq!(reply.header("retry-after"), Some(seconds));
    }
}

#[tokio::test]
async fn a_rejected_token_gets_a_challenge_with_the_error() {
    for (code, reason, challenge) in [
        (
            Code::Unauthenticated,
            "TOKEN_MISSING",
            r#"Bearer realm="delivery""#,
        ),
        (
            Code::Unauthenticated,
            "TOKEN_EXPIRED",
            r#"Bearer error="invalid_token", error_description="it's 'over'""#,
        ),
        (
            Code::PermissionDenied,
            "INSUFFICIENT_SCOPE",
            r#"Bearer error="insufficient_scope", scope="tasks:all""#,
        ),
    ] {
        let reply = reply_to(core_status(code, reason, "it's \"over\"")).await;

        assert_eq!(reply.header("www-authenticate"), Some(challenge));
    }
}

#[tokio::test]
async fn a_missing_scope_without_a_name_gets_a_challenge_without_scope() {
    let details = ErrorDetails::with_error_info("INSUFFICIENT_SCOPE", proto::ERROR_DOMAIN, []);
    let status = Status::with_error_details(Code::PermissionDenied, "why", details);

    let reply = reply_to(status).await;

    assert_eq!(reply.status, 403);
    assert_eq!(
        reply.header("www-authenticate"),
        Some(r#"Bearer error="insufficient_scope""#)
    );
}

#[tokio::test]
async fn a_retryable_error_has_a_retry_after() {
    use std::time::Duration;

    let after = |delay| ErrorDetails::with_retry_info(Some(delay));
    for (code, reason, details, seconds) in [
        (
            Code::ResourceExhausted,
            "X",
            after(Duration::from_millis(1500)),
            "2",
        ),
        (Code::ResourceExhausted, "X", after(Duration::ZERO), "1"),
        (Code::ResourceExhausted, "X", ErrorDetails::new(), "60"),
        (
            Code::ResourceExhausted,
            "OVERLOADED",
            after(Duration::from_secs(7)),
            "7",
        ),
        (
            Code::ResourceExhausted,
            "OVERLOADED",
            ErrorDetails::new(),
            "1",
        ),
        (Code::Unavailable, "", after(Duration::from_secs(9)), "9"),
        (Code::Unavailable, "", ErrorDetails::new(), "1"),
    ] {
        let reply = reply_to(core_status_with(code, reason, "why", details)).await;

        assert_eq!(reply.header("retry-after"), Some(seconds), "{reason}");
    }
}

#[tokio::test]
async fn a_malformed_authorization_header_is_rejected_without_a_call_to_core() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", &b"Bearer \xff"[..]);
    let not_ascii = platform.client.send(request, "").await;
    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", "Bearer a")
        .header("authorization", "Bearer b");
    let repeated = platform.client.send(request, "").await;

    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", format!("Bearer {}", "a".repeat(9000)));
    let too_long = platform.client.send(request, "").await;

    let detail =
        "the Authorization header must be one line of at most 8192 visible ASCII characters";
    for reply in [not_ascii, repeated, too_long] {
        assert_eq!(reply.status, 401);
        assert_eq!(
            without_title_and_retryable(&reply),
            error_json(401, "token_invalid", detail)
        );
        assert_eq!(
            reply.header("www-authenticate"),
            Some(format!(r#"Bearer error="invalid_token", error_description="{detail}""#).as_str())
        );
    }
    assert!(!platform.core.has_unread_call());
}
