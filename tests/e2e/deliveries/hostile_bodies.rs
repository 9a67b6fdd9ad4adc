//! Malformed request bodies: truncated, oversized, deeply nested, wrongly encoded.

use hyper::Method;
use serde_json::json;

use super::draft;
use crate::harness::{Database, Mismatches, Platform, raw};

/// The largest accepted body, in bytes.
const LIMIT: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_body_is_rejected_in_the_error_format() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for (case, body) in broken_bodies() {
        let request = client.request(Method::POST, "/api/deliveries");
        let response = client.send(request, body).await;
        mismatches.check_error(format!("{case:.60}"), &response, 400);
    }

    client.create_delivery(draft()).await;
    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_one_mebibyte_is_accepted_and_a_longer_one_is_413() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let padded = |length: usize| {
        let mut body = draft().to_string().into_bytes();
        body.resize(length, b' ');
        body
    };
    let head = |more: &str| {
        let token = client.token();
        format!(
            "POST /api/deliveries HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/ld+json\r\n{more}\r\n"
        )
        .into_bytes()
    };
    let mut mismatches = Mismatches::default();

    let request = client.request(Method::POST, "/api/deliveries");
    let largest = client.send(request, padded(LIMIT)).await;
    mismatches.check_eq("one mebibyte", largest.status, 201);
    let too_long = padded(LIMIT + 1);
    let chunk = [
        format!("{:x}\r\n", too_long.len()).into_bytes(),
        too_long.clone(),
        b"\r\n0\r\n\r\n".to_vec(),
    ]
    .concat();
    for (case, request) in [
        (
            "one byte over the limit",
            [
                head(&format!("Content-Length: {}\r\n", too_long.len())),
                too_long,
            ]
            .concat(),
        ),
        (
            "an oversized chunk",
            [head("Transfer-Encoding: chunked\r\n"), chunk].concat(),
        ),
        (
            "an announced length without a body",
            head("Content-Length: 10000000000\r\n"),
        ),
    ] {
        match raw::send(&platform.base_url, &request).await {
            Some(response) => mismatches.check_error(case, &response, 413),
            None => mismatches.check(case, false, "no response"),
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_or_malformed_http_request_does_not_affect_other_requests() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let body = draft().to_string();
    let token = client.token();
    let head = format!(
        "POST /api/deliveries HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/ld+json\r\n"
    );
    let mut mismatches = Mismatches::default();

    for request in [
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len() + 10),
        format!("{head}Content-Length: 1000\r\n\r\n"),
        format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}",
            body.len() + 5
        ),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n"),
        format!("{head}Content-Length: -1\r\n\r\n{body}"),
        format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{body}"),
        head.clone(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}hello".to_owned(),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(1_000_000)),
        format!(
            "GET /api HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "a".repeat(1_000_000)
        ),
    ] {
        let case: String = request
            .chars()
            .rev()
            .take(80)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        if let Some(response) =
            raw::send_and_half_close(&platform.base_url, request.as_bytes()).await
        {
            mismatches.check(case, (400..500).contains(&response.status), response.status);
        }
    }

    client.create_delivery(draft()).await;
    mismatches.assert_none();
    platform.stop().await;
}

/// Malformed bodies with their names.
fn broken_bodies() -> Vec<(String, Vec<u8>)> {
    let valid = draft().to_string();
    let mut bodies: Vec<(String, Vec<u8>)> = [
        "",
        " ",
        "{",
        "[",
        "\"",
        "{\"dropoff\":",
        "{\"dropoff\":{}",
        "{dropoff:{}}",
        "{'dropoff':{}}",
        "x",
        "NaN",
        "{\"a\":NaN}",
        "{\"a\":01}",
        "{\"a\":1e}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\u{1}\"}",
        "null",
        "true",
        "5",
        "\"x\"",
        "[]",
        "{}{}",
        "{},",
        "\0",
    ]
    .iter()
    .map(|text| ((*text).to_owned(), text.as_bytes().to_vec()))
    .collect();
    for end in [1, valid.len() / 2, valid.len() - 1] {
        bodies.push((
            format!("truncated after {end} bytes"),
            valid.as_bytes()[..end].to_vec(),
        ));
    }
    for (case, body) in [
        (
            "Latin-1",
            b"{\"dropoff\":{\"address\":\"272 Rue Saint-Honor\xe9\"}}".to_vec(),
        ),
        ("an invalid byte", b"{\"comments\":\"\xff\"}".to_vec()),
        (
            "an overlong encoding",
            b"{\"comments\":\"\xc0\xaf\"}".to_vec(),
        ),
        (
            "a surrogate in UTF-8",
            b"{\"comments\":\"\xed\xa0\x80\"}".to_vec(),
        ),
        (
            "UTF-16",
            valid.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        (
            "nested arrays",
            [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
        ),
        ("unclosed arrays", vec![b'['; 500_000]),
        ("nested objects", "{\"a\":".repeat(100_000).into_bytes()),
        (
            "a compressed body",
            vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
        ),
    ] {
        bodies.push((case.to_owned(), body));
    }
    for (case, body) in [
        ("dropoff twice", valid.replacen('{', "{\"dropoff\":{},", 1)),
        ("before twice", valid.replacen("\"before\"", "\"before\":\"noon\",\"before\"", 1)),
        (
            "a telephone twice",
            json!({ "dropoff": { "address": { "streetAddress": "48 Rue de Rivoli", "telephone": null }, "before": "noon" } })
                .to_string()
                .replacen("\"telephone\"", "\"telephone\":null,\"telephone\"", 1),
        ),
        (
            "a key of metadata twice",
            valid.replacen("\"before\"", "\"metadata\":{\"a\":\"1\",\"a\":\"2\"},\"before\"", 1),
        ),
    ] {
        bodies.push((case.to_owned(), body.into_bytes()));
    }
    bodies
}
