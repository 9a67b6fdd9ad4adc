//! The error responses to unknown paths and methods.

use http::Method;

use crate::{
    errors::{error_json, without_title_and_retryable},
    harness::Platform,
};

#[tokio::test]
async fn an_unknown_path_is_404() {
    let platform = Platform::start().await;
    for path in [
        "/api/nothing",
        "/api/nothing/",
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
            without_title_and_retryable(&reply),
            error_json(404, "not_found", "there is no such path; see /api/docs")
        );
    }
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_slash_at_the_end_is_named() {
    let platform = Platform::start().await;
    for path in ["/api", "/api/deliveries", "/api/tasks/1", "/oauth2/token"] {
        let reply = platform.client.get(&format!("{path}/")).await;

        let detail = format!("there is no such path; did you mean {path}?");
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(
            without_title_and_retryable(&reply),
            error_json(404, "not_found", &detail)
        );
    }
}

#[tokio::test]
async fn a_method_that_changes_a_resource_is_405_with_what_to_do_instead() {
    let platform = Platform::start().await;
    for (path, allow, instead) in [
        (
            "/api/deliveries/1",
            "GET, HEAD, DELETE, OPTIONS",
            "a delivery is not changed: cancel it by DELETE, and create another",
        ),
        (
            "/api/tasks/1",
            "GET, HEAD, PATCH, OPTIONS",
            "a task is corrected by PATCH, and changed by PUT below it, such as /api/tasks/{id}/done",
        ),
        (
            "/api/webhooks/1",
            "GET, HEAD, DELETE, OPTIONS",
            "a webhook is not changed: create another, and delete this one",
        ),
    ] {
        let methods = [Method::PATCH, Method::PUT, Method::POST];
        for method in methods
            .into_iter()
            .filter(|method| !allow.contains(method.as_str()))
        {
            let reply = platform.client.method(method, path).await;

            let detail = format!("the method must be one of {allow}; {instead}");
            assert_eq!(reply.status, 405, "{path}");
            assert_eq!(
                without_title_and_retryable(&reply),
                error_json(405, "method_not_allowed", &detail)
            );
        }
    }
}

#[tokio::test]
async fn another_method_of_a_known_path_is_405() {
    let platform = Platform::start().await;
    for (method, path, allow) in [
        (Method::GET, "/oauth2/token", "POST, OPTIONS"),
        (Method::GET, "/api/retail_prices/calculate", "POST, OPTIONS"),
        (Method::HEAD, "/api/deliveries/assert", "POST, OPTIONS"),
        (Method::PATCH, "/api/deliveries", "GET, HEAD, POST, OPTIONS"),
        (Method::POST, "/api/events/1", "GET, HEAD, OPTIONS"),
        (Method::DELETE, "/api/tasks/1", "GET, HEAD, PATCH, OPTIONS"),
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
            let detail = format!("the method must be one of {allow}");
            assert_eq!(
                without_title_and_retryable(&reply),
                error_json(405, "method_not_allowed", &detail)
            );
        }
    }
}

#[tokio::test]
async fn the_root_is_a_page_that_leads_to_the_documentation() {
    let platform = Platform::start().await;

    let page = platform.client.get("/").await;

    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for part in ["content=\"0; url=api/docs\"", "<a href=\"api/docs\">"] {
        assert!(page.text().contains(part), "{part}");
    }
}
