//! Every row of the table of errors: a status of core's → an answer.

use http::Method;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::ErrorDetails;

use crate::harness::{
    PUBLIC_URL, Platform, Reply,
    samples::{ID, refusal, refusal_with},
};

/// The answer when core refuses with a status.
async fn reply_to(status: Status) -> Reply {
    let platform = Platform::start().await;
    platform.core.will_refuse(status);

    platform.client.get(&format!("/api/tasks/{ID}")).await
}

fn error_json(status: u16, code: &str, detail: &str) -> Value {
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

/// The error of an answer without its title and `retryable`, which have a test of their own.
fn shape(reply: &Reply) -> Value {
    let mut error = reply.error();
    let members = error.as_object_mut().unwrap();
    assert!(members.remove("title").unwrap().is_string());
    assert!(members.remove("retryable").unwrap().is_boolean());
    error
}

#[tokio::test]
async fn each_status_of_core_is_one_answer() {
    const OURS: &str = "something went wrong on our side";
    for (code, reason, status, error_code, detail) in [
        (
            Code::Unauthenticated,
            "TOKEN_MISSING",
            401,
            "token_missing",
            "told",
        ),
        (
            Code::Unauthenticated,
            "TOKEN_INVALID",
            401,
            "token_invalid",
            "told",
        ),
        (
            Code::Unauthenticated,
            "TOKEN_EXPIRED",
            401,
            "token_expired",
            "told",
        ),
        (
            Code::PermissionDenied,
            "INSUFFICIENT_SCOPE",
            403,
            "insufficient_scope",
            "told",
        ),
        (Code::NotFound, "NOT_FOUND", 404, "not_found", "told"),
        (
            Code::FailedPrecondition,
            "DELIVERY_CANCELLED",
            409,
            "delivery_cancelled",
            "told",
        ),
        (Code::FailedPrecondition, "", 409, "conflict", "told"),
        (Code::AlreadyExists, "CONFLICT", 409, "conflict", "told"),
        (
            Code::ResourceExhausted,
            "TOO_MANY_WEBHOOKS",
            429,
            "too_many_webhooks",
            "told",
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
            "the answer was not ready in time",
        ),
        (Code::Internal, "INTERNAL", 500, "internal", OURS),
        (Code::Unknown, "", 500, "internal", OURS),
        (Code::Unimplemented, "", 500, "internal", OURS),
        (Code::DataLoss, "", 500, "internal", OURS),
    ] {
        let reply = reply_to(refusal(code, reason, "told")).await;

        assert_eq!(reply.status, status, "{code:?} {reason}");
        assert_eq!(shape(&reply), error_json(status, error_code, detail));
        assert_eq!(
            reply.header("content-type"),
            Some("application/ld+json; charset=utf-8")
        );
    }
}

#[tokio::test]
async fn the_whole_body_of_an_error() {
    let reply = reply_to(refusal(
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
async fn a_code_that_is_new_is_passed_on_and_explained_in_general() {
    let reply = reply_to(refusal(Code::FailedPrecondition, "SOMETHING_NEW", "told")).await;

    let mut expected = error_json(409, "something_new", "told");
    expected["type"] = json!(format!("{PUBLIC_URL}/errors/conflict"));
    assert_eq!(shape(&reply), expected);
}

#[tokio::test]
async fn an_invalid_argument_without_violations_is_one_of_the_whole_body() {
    let reply = reply_to(Status::invalid_argument("told")).await;

    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["@type"], "ConstraintViolationList");
    assert_eq!(
        reply.json()["violations"],
        json!([{"propertyPath": "", "message": "told", "code": ""}])
    );
}

#[tokio::test]
async fn who_sent_a_token_is_told_what_is_wrong_with_it() {
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
        let reply = reply_to(refusal(code, reason, "it's \"over\"")).await;

        assert_eq!(reply.header("www-authenticate"), Some(challenge));
    }
}

#[tokio::test]
async fn a_refusal_that_names_no_scope_challenges_for_none() {
    let reply = reply_to(Status::permission_denied("told")).await;

    assert_eq!(reply.status, 403);
    assert_eq!(
        reply.header("www-authenticate"),
        Some(r#"Bearer error="insufficient_scope""#)
    );
}

#[tokio::test]
async fn who_is_to_come_back_is_told_when() {
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
        let reply = reply_to(refusal_with(code, reason, "told", details)).await;

        assert_eq!(reply.header("retry-after"), Some(seconds), "{reason}");
    }
}

#[tokio::test]
async fn every_error_has_a_page_at_its_type() {
    let platform = Platform::start().await;
    platform
        .core
        .will_refuse(refusal(Code::NotFound, "NOT_FOUND", "told"));

    let error = platform.client.get("/api/tasks/1").await.json();
    let path = error["type"].as_str().unwrap().strip_prefix(PUBLIC_URL);
    let page = platform.client.get(path.unwrap()).await;
    let missing = platform.client.get("/errors/none").await;

    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for part in [
        "<title>Not found · Service API</title>",
        "<code>not_found</code>, HTTP 404 Not Found",
        "<dt>Meaning</dt><dd>There is nothing here that you may see.</dd>",
        "<dt>Cause</dt>",
        "<dd>Use the addresses (<code>@id</code>) that the API gave you, as they are.</dd>",
        "<dt>Retryable</dt><dd>No: the same request will fail again.</dd>",
    ] {
        assert!(page.text().contains(part), "{part}");
    }
    assert_eq!(missing.status, 404);
    assert_eq!(
        shape(&missing),
        error_json(404, "not_found", "there is nothing here")
    );
}

#[tokio::test]
async fn every_code_has_a_page_that_says_meaning_cause_cure_and_whether_to_retry() {
    let platform = Platform::start().await;
    let documentation = platform.client.get("/api/docs.json").await.json();
    let codes = &documentation["paths"]["/errors/{code}"]["get"]["parameters"][0]["schema"]["enum"];
    let codes = codes.as_array().unwrap();
    assert!(codes.len() > 20, "{codes:?}");
    for code in codes {
        let code = code.as_str().unwrap();

        let page = platform.client.get(&format!("/errors/{code}")).await;

        assert_eq!(page.status, 200, "{code}");
        assert!(page.text().contains(&format!("<code>{code}</code>, HTTP ")));
        for term in ["Meaning", "Cause", "Cure", "Retryable"] {
            let said = format!("<dt>{term}</dt><dd>");
            let (_, rest) = page.text().split_once(&said).unwrap();
            assert!(
                rest.len() > 20 && !rest.starts_with("</dd>"),
                "{term} of {code}"
            );
        }
    }
}

#[tokio::test]
async fn an_unknown_path_is_404() {
    let platform = Platform::start().await;
    for path in [
        "/",
        "/api/",
        "/api/nothing",
        "/api/tasks",
        "/api/tasks/",
        "/api/tasks/a/b",
        "/api/tasks/%",
        "/api/tasks/%zz",
        "/api/tasks/%ff",
        "//api",
    ] {
        let reply = platform.client.get(path).await;

        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(
            shape(&reply),
            error_json(404, "not_found", "there is nothing here")
        );
    }
    assert!(!platform.core.was_called());
}

#[tokio::test]
async fn another_method_of_a_known_path_is_405() {
    let platform = Platform::start().await;
    for (method, path, allow) in [
        (Method::GET, "/oauth2/token", "POST, OPTIONS"),
        (Method::GET, "/api/retail_prices/calculate", "POST, OPTIONS"),
        (Method::HEAD, "/api/deliveries/assert", "POST, OPTIONS"),
        (Method::PATCH, "/api/deliveries", "GET, HEAD, POST, OPTIONS"),
        (Method::POST, "/api/tasks/1", "GET, HEAD, OPTIONS"),
        (
            Method::PATCH,
            "/api/webhooks/1",
            "GET, HEAD, DELETE, OPTIONS",
        ),
        (
            Method::from_bytes(b"BREW").unwrap(),
            "/api",
            "GET, HEAD, OPTIONS",
        ),
    ] {
        let reply = platform.client.method(method.clone(), path).await;

        assert_eq!(reply.status, 405, "{method} {path}");
        assert_eq!(reply.header("allow"), Some(allow));
        if method != Method::HEAD {
            let detail = format!("the method is not one of {allow}");
            assert_eq!(
                shape(&reply),
                error_json(405, "method_not_allowed", &detail)
            );
        }
    }
}

#[tokio::test]
async fn an_authorization_that_is_no_text_is_refused_here() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", &b"Bearer \xff"[..]);
    let garbled = platform.client.send(request, "").await;
    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", "Bearer a")
        .header("authorization", "Bearer b");
    let twice = platform.client.send(request, "").await;

    let request = platform
        .client
        .request(Method::GET, "/api/tasks/1")
        .header("authorization", format!("Bearer {}", "a".repeat(9000)));
    let long = platform.client.send(request, "").await;

    let detail =
        "the Authorization header is not one line of at most 8192 visible ASCII characters";
    for reply in [garbled, twice, long] {
        assert_eq!(reply.status, 401);
        assert_eq!(shape(&reply), error_json(401, "token_invalid", detail));
        assert_eq!(
            reply.header("www-authenticate"),
            Some(format!(r#"Bearer error="invalid_token", error_description="{detail}""#).as_str())
        );
    }
    assert!(!platform.core.was_called());
}
