//! `OPTIONS` and CORS.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use proto::task;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tonic::Code;

use crate::harness::{
    PUBLIC_URL, Platform,
    samples::{ID, core_status, task},
};

#[tokio::test]
async fn options_lists_the_methods_of_a_path() {
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
    let unknown = platform.client.method(Method::OPTIONS, "/unknown").await;
    assert_eq!(unknown.status, 404);
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_page_of_any_origin_may_call_the_api_with_a_token() {
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
    let allowed = reply.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "if-none-match"] {
        assert!(
            allowed.split(", ").any(|allowed| allowed == name),
            "{allowed}"
        );
    }
    assert_eq!(reply.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn a_page_of_any_origin_may_read_responses_and_errors() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Pickup));
    platform
        .core
        .will_fail(core_status(Code::NotFound, "NOT_FOUND", "no such task"));
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

/// Fails when a documented header is missing from the CORS lists.
#[tokio::test]
async fn a_page_may_set_and_read_every_documented_header() {
    /// The Fetch standard lets every page read it.
    const ALWAYS_EXPOSED: &str = "cache-control";
    let platform = Platform::start().await;
    let preflight = platform
        .client
        .request(Method::OPTIONS, "/api/deliveries")
        .header("access-control-request-method", "POST");
    let preflight = platform.client.send(preflight, "").await;
    let allowed = comma_separated(preflight.header("access-control-allow-headers"));
    let reply = platform.client.get("/api/docs.json").await;
    let exposed = comma_separated(reply.header("access-control-expose-headers"));
    let document = reply.json();

    let headers = document["components"]["headers"].as_object().unwrap();
    for name in headers.keys() {
        // Some headers have two descriptions.
        let name = name.trim_end_matches("-Optional").to_ascii_lowercase();
        assert!(
            exposed.contains(&name.as_str()) || name == ALWAYS_EXPOSED,
            "{name}"
        );
    }
    let shared = document["components"]["parameters"].as_object().unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap());
    let specific = operations
        .flat_map(|(_, operation)| operation["parameters"].as_array().into_iter().flatten());
    let request_headers: Vec<_> = shared
        .values()
        .chain(specific)
        .filter(|parameter| parameter["in"] == "header")
        .map(|parameter| parameter["name"].as_str().unwrap().to_ascii_lowercase())
        .collect();
    for name in &request_headers {
        assert!(allowed.contains(&name.as_str()), "{name}");
    }
    assert!(request_headers.iter().any(|name| name == "idempotency-key"));
}

fn comma_separated(header: Option<&str>) -> Vec<&str> {
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

/// Over HTTP/1; over HTTP/2 it is reset.
#[tokio::test]
async fn a_page_may_read_that_there_is_no_memory_for_its_request() {
    let platform = Platform::start().await;
    let connect = async || TcpStream::connect(platform.gateway.addr).await.unwrap();
    // Responses that are not read take the share of the address, and begun requests what is left.
    let mut unread = Vec::new();
    let mut is_exhausted = false;
    while !is_exhausted {
        let (mut client, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(0)
            .handshake(TokioIo::new(connect().await))
            .await
            .unwrap();
        tokio::spawn(connection);
        for _ in 0..150 {
            let request = Request::get(format!("{PUBLIC_URL}/api/docs.jsonld"));
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let response = client.send_request(request).await.unwrap();
            is_exhausted |= response.status() == 503;
            unread.push(response);
        }
    }
    let request = "GET /api/deliveries HTTP/1.1\r\nHost: x\r\nX-Request-Id: 7\r\n\
                   Origin: https://shop.example\r\nConnection: close\r\n\r\n";
    let mut begun = Vec::new();
    let refused = loop {
        let mut stream = connect().await;
        let head = b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
        stream.write_all(head).await.unwrap();
        begun.push(stream);
        let response = platform.client.send_raw(request.as_bytes()).await;
        if response.starts_with("HTTP/1.1 503 ") {
            break response;
        }
    };

    let mut lines: Vec<_> = refused.trim_end().lines().collect();
    lines.retain(|line| !line.starts_with("date: "));
    lines[1..].sort_unstable();
    let link = format!(
        "link: <{PUBLIC_URL}/api/docs.jsonld>; rel=\"http://www.w3.org/ns/hydra/core#apiDocumentation\""
    );
    let expected = [
        "HTTP/1.1 503 Service Unavailable",
        "access-control-allow-origin: *",
        "access-control-expose-headers: allow, content-language, etag, idempotent-replayed, link, \
         location, ratelimit, ratelimit-policy, retry-after, www-authenticate, x-request-id",
        "cache-control: no-store",
        "connection: close",
        "content-length: 0",
        &link,
        "retry-after: 1",
        "vary: accept",
        "x-content-type-options: nosniff",
        "x-request-id: 7",
    ];
    assert_eq!(lines, expected);
}
