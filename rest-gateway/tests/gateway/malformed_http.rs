//! Requests that HTTP does not permit: the response is an error, of a head that HTTP can parse in the
//! API's form, and the connection is closed.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use proto::CreateDeliveryRequest;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{Client, PUBLIC_URL, Platform, samples::delivery};

/// A second request; it must not get a response.
const NEXT: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// One response that closes the connection.
struct Rejection {
    status: u16,
    headers: HeaderMap,
    error: Value,
}

/// Sends a malformed head followed by another request.
async fn reject(client: &Client, head: &str) -> Rejection {
    parse(&client.send_raw(format!("{head}{NEXT}").as_bytes()).await)
}

fn parse(response: &str) -> Rejection {
    let (head, body) = response.split_once("\r\n\r\n").expect(response);
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: HeaderMap = lines
        .map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
        })
        .collect();
    Rejection {
        status: status.parse().unwrap(),
        headers,
        error: serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {response}")),
    }
}

impl Rejection {
    fn assert_has_the_form_of_an_error(&self, case: &str) {
        let request_id = self.headers.get("x-request-id").expect(case);
        assert_eq!(
            self.error["requestId"],
            request_id.to_str().unwrap(),
            "{case}"
        );
        assert_eq!(self.error["status"], self.status, "{case}");
        assert_eq!(
            self.headers["content-type"],
            "application/ld+json; charset=utf-8"
        );
        assert_eq!(self.headers["connection"], "close", "{case}");
        let code = self.error["code"].as_str().unwrap();
        assert_eq!(self.error["type"], format!("{PUBLIC_URL}/errors/{code}"));
    }
}

#[tokio::test]
async fn a_head_with_an_ambiguous_host_is_400() {
    let platform = Platform::start().await;
    for (head, code) in [
        ("GET /api HTTP/1.1\r\n\r\n", "required"),
        ("GET http://a/api HTTP/1.1\r\n\r\n", "required"),
        (
            "GET /api HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "repeated",
        ),
        (
            "GET /api HTTP/1.1\r\nhost: a\r\nHOST: b\r\n\r\n",
            "repeated",
        ),
        ("GET /api HTTP/1.1\r\nHost: a b\r\n\r\n", "malformed"),
        ("GET /api HTTP/1.1\r\nHost: a/b\r\n\r\n", "malformed"),
        ("GET /api HTTP/1.1\r\nHost: a@b\r\n\r\n", "malformed"),
    ] {
        let rejection = reject(&platform.client, head).await;

        assert_eq!(rejection.status, 400, "{head}: {}", rejection.error);
        rejection.assert_has_the_form_of_an_error(head);
        assert_eq!(rejection.error["code"], "validation_failed", "{head}");
        let violations = rejection.error["violations"].as_array().unwrap();
        assert_eq!(violations.len(), 1, "{head}");
        assert_eq!(violations[0]["propertyPath"], "Host", "{head}");
        assert_eq!(violations[0]["code"], code, "{head}");
    }
}

#[tokio::test]
async fn a_repeated_transfer_coding_or_a_list_of_them_is_400() {
    let platform = Platform::start().await;
    for coding in [
        "gzip, chunked",
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "gzip\r\nTransfer-Encoding: chunked",
    ] {
        let head = format!(
            "POST /oauth2/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"
        );

        let rejection = reject(&platform.client, &head).await;

        assert_eq!(rejection.status, 400, "{coding}");
        rejection.assert_has_the_form_of_an_error(coding);
        let violation = &rejection.error["violations"][0];
        assert_eq!(violation["propertyPath"], "Transfer-Encoding", "{coding}");
        assert_eq!(violation["code"], "unsupported", "{coding}");
    }
}

/// A proxy that uses `Content-Length` takes what follows the chunked body for the rest of the body.
#[tokio::test]
async fn a_request_with_two_lengths_is_chunked_and_the_last_of_its_connection() {
    let platform = Platform::start().await;
    let chunked = "Transfer-Encoding: chunked\r\n";
    for framing in [
        format!("Content-Length: 5\r\n{chunked}"),
        format!("{chunked}Content-Length: 5\r\n"),
        format!("Content-Length: 5\r\n{chunked}Content-Length: 60\r\n"),
    ] {
        let head = "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                    Authorization: Bearer a\r\n";
        let smuggled = "PUT /api/tasks/1/done HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n\
                        Content-Length: 0\r\n\r\n";
        let request = format!("{head}{framing}\r\n2\r\n{{}}\r\n0\r\n\r\n{smuggled}");
        platform.core.will_respond(delivery());

        let response = platform.client.send_raw(request.as_bytes()).await;

        assert!(
            response.starts_with("HTTP/1.1 201 "),
            "{framing}: {response}"
        );
        assert_eq!(
            response.matches("HTTP/1.1 ").count(),
            1,
            "{framing}: {response}"
        );
        platform.core.received::<CreateDeliveryRequest>();
        assert!(!platform.core.has_unread_call(), "{framing}");
    }
}

#[tokio::test]
async fn connect_is_501_in_both_versions_of_http() {
    let platform = Platform::start().await;
    let head = "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n";
    let http1 = reject(&platform.client, head).await;
    http1.assert_has_the_form_of_an_error(head);

    let stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::connect("shop.example:443").header("x-request-id", "7");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let (http2, body) = client.send_request(request).await.unwrap().into_parts();
    let error: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();

    let detail = "the gateway is no proxy: it opens no tunnels";
    let expected = json!({
        "@context": "/api/contexts/Error",
        "@type": "hydra:Error",
        "hydra:title": "An error occurred",
        "hydra:description": detail,
        "type": format!("{PUBLIC_URL}/errors/not_implemented"),
        "title": "Not implemented",
        "status": 501,
        "detail": detail,
        "code": "not_implemented",
        "retryable": false,
        "requestId": "7",
    });
    assert_eq!((http2.status.as_u16(), error), (501, expected.clone()));
    assert_eq!(http2.headers["x-request-id"], "7");
    let mut error = http1.error;
    error["requestId"] = "7".into();
    assert_eq!((http1.status, error), (501, expected));
    let request = Request::get(format!("http://{}/healthz", platform.gateway.addr));
    let next = client.send_request(request.body(Empty::new()).unwrap());
    assert_eq!(next.await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_is_not_http_is_400_or_431_without_a_body() {
    let platform = Platform::start().await;
    let post = |headers: &str| {
        format!("POST /api/deliveries HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n12345")
    };
    let get = |rest: &str| format!("GET {rest}");
    for (request, status) in [
        (post("Content-Length: 5\r\nContent-Length: 6"), 400),
        (post("Content-Length: 5, 6"), 400),
        (post("Content-Length: +5"), 400),
        (post(&format!("Content-Length: {}", u64::MAX)), 431),
        (post("Transfer-Encoding: identity"), 400),
        (post("Transfer-Encoding: chunked, identity"), 400),
        (post("Transfer-Encoding: xchunked"), 400),
        (post("Transfer-Encoding: chunked;a=b"), 400),
        (post("Transfer-Encoding:"), 400),
        (post("Transfer-Encoding : chunked"), 400),
        (
            "POST /api HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            400,
        ),
        (get("/errors/a b HTTP/1.1\r\nHost: x\r\n\r\n"), 400),
        (get("/errors/\0 HTTP/1.1\r\nHost: x\r\n\r\n"), 400),
        (get("http:// HTTP/1.1\r\nHost: x\r\n\r\n"), 400),
        (get("/api HTTP/9.9\r\nHost: x\r\n\r\n"), 400),
        (get("/api\r\nHost: x\r\n\r\n"), 400),
        ("G(T /api HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        (get("/api HTTP/1.1\r\n Host: x\r\n\r\n"), 400),
        (get("/api HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n"), 400),
        (get("/api HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n"), 400),
        ("\u{16}\u{3}\u{1}hello".to_owned(), 400),
        (
            get(&format!("/api HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(101))),
            431,
        ),
        (
            get(&format!(
                "/api HTTP/1.1\r\nX: {}\r\n\r\n",
                "a".repeat(70_000)
            )),
            431,
        ),
        (
            get(&format!("/{} HTTP/1.1\r\n\r\n", "a".repeat(70_000))),
            431,
        ),
    ] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        // The gateway may close the connection before it has read everything.
        let _ = stream
            .write_all(format!("{request}{NEXT}").as_bytes())
            .await;
        let mut response = Vec::new();
        let received = stream.read_to_end(&mut response);
        let _ = tokio::time::timeout(Duration::from_secs(20), received)
            .await
            .expect("the connection is closed");

        let response = String::from_utf8(response).unwrap();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(
            response.starts_with(&expected),
            "{request:.60?}: {response}"
        );
        assert!(response.ends_with("\r\n\r\n"), "{request:.60?}: {response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
    assert!(!platform.core.has_unread_call());
    let most = "X: y\r\n".repeat(98);
    let accepted = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{most}Connection: close\r\n\r\n");
    let response = platform.client.send_raw(accepted.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[tokio::test]
async fn a_rejection_has_the_request_id_and_the_media_type_of_a_well_formed_head() {
    let platform = Platform::start().await;

    let rejection = reject(
        &platform.client,
        "GET /api HTTP/1.1\r\nX-Request-Id: shop-7\r\nAccept: application/problem+json\r\n\r\n",
    )
    .await;
    let head = platform
        .client
        .send_raw(b"HEAD /api HTTP/1.1\r\nX-Request-Id: shop-8\r\n\r\n")
        .await;

    assert_eq!(rejection.headers["x-request-id"], "shop-7");
    assert_eq!(
        rejection.headers["content-type"],
        "application/problem+json"
    );
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert!(head.contains("x-request-id: shop-8\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn requests_before_a_malformed_one_get_their_responses() {
    let platform = Platform::start().await;
    let chunked = |path: &str, chunks: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n{chunks}")
    };
    let requests = [
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        // What looks like the head of a request is part of a body.
        &chunked("/nowhere", "1a;ext=\"1\"\r\nGET / HTTP/1.1\r\nVia: x\r\n\r\n\r\n0\r\nTrailer: x\r\n\r\n"),
        &chunked("/nowhere", "0\r\n\r\n"),
        "\r\nPOST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\nGET / H",
        "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n",
        "GET /api HTTP/1.1\r\n\r\n",
        NEXT,
    ]
    .concat();

    for written_at_once in [requests.len(), 1, 7] {
        let mut stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for part in requests.as_bytes().chunks(written_at_once) {
            // The gateway closes the connection before it has read what follows the malformed one.
            let _ = stream.write_all(part).await;
            tokio::task::yield_now().await;
        }
        let mut response = Vec::new();
        let received = stream.read_to_end(&mut response);
        let _ = tokio::time::timeout(Duration::from_secs(20), received)
            .await
            .expect("the connection is closed");

        let response = String::from_utf8(response).unwrap();
        let statuses: Vec<_> = response
            .match_indices("HTTP/1.1 ")
            .map(|(start, _)| &response[start + 9..start + 12])
            .collect();
        assert_eq!(
            statuses,
            ["200", "404", "404", "404", "200", "400"],
            "{response}"
        );
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let platform = Platform::start().await;

    let response = platform
        .client
        .send_raw(b"GET /healthz HTTP/1.0\r\n\r\n")
        .await;

    assert!(response.starts_with("HTTP/1.0 200 "), "{response}");
}

/// Sends a request over HTTP/2 and returns the status and body of its response.
async fn http2(platform: &Platform, request: Request<()>) -> (u16, Value) {
    let stream = TcpStream::connect(platform.gateway.addr).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let response = response.await.unwrap();
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        bytes.extend_from_slice(&data.unwrap());
    }
    (
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    )
}

#[tokio::test]
async fn http_2_requires_one_authority_and_limits_headers_alike() {
    let platform = Platform::start().await;
    let request = |uri: &str, version| Request::get(uri).version(version);
    let absolute = || request("http://a/api/settings", Version::HTTP_2);
    // With this version, `h2` sends a target without `:authority`.
    let relative = || request("/api/settings", Version::HTTP_11);
    let many = (0..101).fold(absolute(), |request, _| request.header("x", "y"));

    for (request, status, path) in [
        (absolute(), 200, Value::Null),
        (absolute().header("host", "a"), 200, Value::Null),
        (relative().header("host", "a"), 200, Value::Null),
        (relative(), 400, json!("Host")),
        (absolute().header("host", "b"), 400, json!("Host")),
        (
            absolute().header("host", "a").header("host", "a"),
            400,
            json!("Host"),
        ),
        (many, 431, Value::Null),
        (absolute().header("x", "a".repeat(70_000)), 431, Value::Null),
    ] {
        let request = request.body(()).unwrap();
        let case = format!("{:?} {:?}", request.uri(), request.headers().get("host"));
        let (found, body) = http2(&platform, request).await;

        assert_eq!(found, status, "{case}: {body}");
        assert_eq!(body["violations"][0]["propertyPath"], path, "{case}");
        if status == 431 {
            assert_eq!(body["code"], "headers_too_large");
        }
    }
}
