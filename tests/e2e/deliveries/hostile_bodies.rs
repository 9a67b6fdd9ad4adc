//! Bodies that are not an order at all: broken, endless, bottomless, in no known encoding.

use hyper::Method;
use serde_json::json;

use super::order;
use crate::harness::{Database, Faults, Platform, raw};

/// The largest body that is read.
const LIMIT: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_no_json_object_is_refused_in_the_error_form() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut faults = Faults::default();

    for (case, body) in broken_bodies() {
        let request = client.request(Method::POST, "/api/deliveries");
        let answer = client.send(request, body).await;
        faults.failure(format!("{case:.60}"), &answer, 400);
    }

    client.create_delivery(order()).await;
    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_one_mebibyte_is_read_and_a_longer_one_is_413() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let padded = |length: usize| {
        let mut body = order().to_string().into_bytes();
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
    let mut faults = Faults::default();

    let request = client.request(Method::POST, "/api/deliveries");
    let largest = client.send(request, padded(LIMIT)).await;
    faults.equal("one mebibyte", largest.status, 201);
    let too_long = padded(LIMIT + 1);
    let chunk = [
        format!("{:x}\r\n", too_long.len()).into_bytes(),
        too_long.clone(),
        b"\r\n0\r\n\r\n".to_vec(),
    ]
    .concat();
    for (case, request) in [
        (
            "a byte more",
            [
                head(&format!("Content-Length: {}\r\n", too_long.len())),
                too_long,
            ]
            .concat(),
        ),
        (
            "a chunk that is too long",
            [head("Transfer-Encoding: chunked\r\n"), chunk].concat(),
        ),
        ("a length alone", head("Content-Length: 10000000000\r\n")),
    ] {
        match raw::send(&platform.base_url, &request).await {
            Some(answer) => faults.failure(case, &answer, 413),
            None => faults.holds(case, false, "no answer"),
        }
    }

    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_breaks_off_or_is_no_http_harms_nobody() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let body = order().to_string();
    let token = client.token();
    let head = format!(
        "POST /api/deliveries HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/ld+json\r\n"
    );
    let mut faults = Faults::default();

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
        if let Some(answer) = raw::send_and_hang_up(&platform.base_url, request.as_bytes()).await {
            faults.holds(case, (400..500).contains(&answer.status), answer.status);
        }
    }

    client.create_delivery(order()).await;
    faults.none();
    platform.stop().await;
}

/// Names of bodies, and the bodies.
fn broken_bodies() -> Vec<(String, Vec<u8>)> {
    let sound = order().to_string();
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
    for end in [1, sound.len() / 2, sound.len() - 1] {
        bodies.push((
            format!("cut off after {end}"),
            sound.as_bytes()[..end].to_vec(),
        ));
    }
    for (case, body) in [
        (
            "Latin-1",
            b"{\"dropoff\":{\"address\":\"272 Rue Saint-Honor\xe9\"}}".to_vec(),
        ),
        ("a stray byte", b"{\"comments\":\"\xff\"}".to_vec()),
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
            sound.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        (
            "arrays in arrays",
            [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
        ),
        ("arrays without end", vec![b'['; 500_000]),
        ("objects in objects", "{\"a\":".repeat(100_000).into_bytes()),
        (
            "arrays in a member that is ignored",
            sound
                .replacen(
                    '{',
                    &format!("{{\"x\":{}1{},", "[".repeat(50_000), "]".repeat(50_000)),
                    1,
                )
                .into_bytes(),
        ),
        (
            "a compressed body",
            vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
        ),
    ] {
        bodies.push((case.to_owned(), body));
    }
    for (case, body) in [
        ("dropoff twice", sound.replacen('{', "{\"dropoff\":{},", 1)),
        ("before twice", sound.replacen("\"before\"", "\"before\":\"noon\",\"before\"", 1)),
        (
            "a telephone twice",
            json!({ "dropoff": { "address": { "streetAddress": "48 Rue de Rivoli", "telephone": null }, "before": "noon" } })
                .to_string()
                .replacen("\"telephone\"", "\"telephone\":null,\"telephone\"", 1),
        ),
        (
            "a key of metadata twice",
            sound.replacen("\"before\"", "\"metadata\":{\"a\":\"1\",\"a\":\"2\"},\"before\"", 1),
        ),
    ] {
        bodies.push((case.to_owned(), body.into_bytes()));
    }
    bodies
}
