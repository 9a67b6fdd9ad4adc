//! What browsers, and other clients that ask before they ask: `OPTIONS`, CORS, the docs page.

use http::Method;
use proto::task;
use tonic::Code;

use crate::harness::{
    Platform,
    samples::{ID, refusal, task},
};

#[tokio::test]
async fn options_tells_the_methods_of_a_path() {
    let platform = Platform::start().await;
    for (path, allow) in [
        ("/api/deliveries", "GET, HEAD, POST, OPTIONS"),
        ("/api/deliveries/1", "GET, HEAD, DELETE, OPTIONS"),
        ("/oauth2/token", "POST, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ] {
        let reply = platform.client.method(Method::OPTIONS, path).await;

        assert_eq!(reply.status, 204, "{path}");
        assert_eq!(reply.header("allow"), Some(allow));
        assert_eq!(reply.header("access-control-allow-methods"), None);
        assert!(reply.body.is_empty());
    }
    let nowhere = platform.client.method(Method::OPTIONS, "/nowhere").await;
    assert_eq!(nowhere.status, 404);
    assert!(!platform.core.was_called());
}

#[tokio::test]
async fn a_page_of_any_origin_may_call_the_api_with_a_token_it_has() {
    let platform = Platform::start().await;
    let preflight = platform
        .client
        .request(Method::OPTIONS, "/api/deliveries")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );

    let reply = platform.client.send(preflight, "").await;

    assert_eq!(reply.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-max-age", "7200"),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    let taken = reply.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "if-none-match"] {
        assert!(taken.split(", ").any(|taken| taken == name), "{taken}");
    }
    assert_eq!(reply.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn a_page_of_any_origin_may_read_answers_and_errors() {
    let platform = Platform::start().await;
    platform.core.will_answer(task(task::Kind::Pickup));
    platform
        .core
        .will_refuse(refusal(Code::NotFound, "NOT_FOUND", "not here"));
    for status in [200, 404] {
        let request = platform
            .client
            .request(Method::GET, &format!("/api/tasks/{ID}"))
            .header("origin", "https://shop.example");

        let reply = platform.client.send(request, "").await;

        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            reply.header("access-control-expose-headers"),
            Some(
                "allow, content-language, etag, idempotent-replayed, link, location, ratelimit, \
                 ratelimit-policy, retry-after, www-authenticate, x-request-id"
            )
        );
    }
}

/// Whatever is documented, so that none is forgotten.
#[tokio::test]
async fn a_page_may_set_and_read_every_header_that_is_documented() {
    /// What the Fetch standard lets every page read.
    const ALWAYS_TOLD: &str = "cache-control";
    let platform = Platform::start().await;
    let preflight = platform
        .client
        .request(Method::OPTIONS, "/api/deliveries")
        .header("access-control-request-method", "POST");
    let preflight = platform.client.send(preflight, "").await;
    let taken = words(preflight.header("access-control-allow-headers"));
    let reply = platform.client.get("/api/docs.json").await;
    let told = words(reply.header("access-control-expose-headers"));
    let document = reply.json();

    let headers = document["components"]["headers"].as_object().unwrap();
    for name in headers.keys() {
        // One header may be described twice.
        let name = name.trim_end_matches("-At-Times").to_ascii_lowercase();
        assert!(
            told.contains(&name.as_str()) || name == ALWAYS_TOLD,
            "{name}"
        );
    }
    let shared = document["components"]["parameters"].as_object().unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap());
    let own = operations
        .flat_map(|(_, operation)| operation["parameters"].as_array().into_iter().flatten());
    let set: Vec<_> = shared
        .values()
        .chain(own)
        .filter(|parameter| parameter["in"] == "header")
        .map(|parameter| parameter["name"].as_str().unwrap().to_ascii_lowercase())
        .collect();
    for name in &set {
        assert!(taken.contains(&name.as_str()), "{name}");
    }
    assert!(set.iter().any(|name| name == "idempotency-key"));
}

fn words(header: Option<&str>) -> Vec<&str> {
    header.unwrap().split(", ").collect()
}

#[tokio::test]
async fn a_page_of_another_origin_gets_no_token() {
    let platform = Platform::start().await;
    let preflight = platform
        .client
        .request(Method::OPTIONS, "/oauth2/token")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST");

    let preflight = platform.client.send(preflight, "").await;
    let reply = platform.client.method(Method::POST, "/oauth2/token").await;

    for reply in [preflight, reply] {
        for name in [
            "access-control-allow-origin",
            "access-control-allow-methods",
        ] {
            assert_eq!(reply.header(name), None);
        }
    }
}

#[tokio::test]
async fn the_docs_page_loads_nothing_from_elsewhere() {
    let platform = Platform::start().await;

    let page = platform.client.get("/api/docs").await;

    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    let mut files = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        for rest in page.text().split(attribute).skip(1) {
            let (address, _) = rest.split_once('"').unwrap();
            assert!(!address.contains("//"), "{address}");
            files.extend(address.strip_prefix("docs/").map(str::to_owned));
        }
    }
    let mut next = 0;
    while let Some(file) = files.get(next) {
        let reply = platform.client.get(&format!("/api/docs/{file}")).await;

        assert_eq!(reply.status, 200, "{file}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(!reply.text().contains("http"), "{file}");
        for rest in reply.text().split("from \"./").skip(1) {
            let (module, _) = rest.split_once('"').unwrap();
            if !files.iter().any(|known| known == module) {
                files.push(module.to_owned());
            }
        }
        next += 1;
    }
    assert_eq!(files.len(), 6, "{files:?}");
    assert_eq!(platform.client.get("/api/docs/mod.rs").await.status, 404);
}

#[tokio::test]
async fn openapi_is_told_to_everybody() {
    let platform = Platform::start().await;

    let reply = platform.client.get("/api/docs.json").await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["title"], "Service API");
    assert_eq!(document["servers"][0]["url"], crate::harness::PUBLIC_URL);
    assert!(!platform.core.was_called());
}
