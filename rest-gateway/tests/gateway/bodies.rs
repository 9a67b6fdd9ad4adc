//! Malformed, oversized and slow request bodies.

use proto::{CreateDeliveryRequest, DeliveryDraft, Violation};
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::{ErrorDetails, FieldViolation};

use crate::harness::{
    Client, Platform,
    samples::{core_status_with, delivery},
};

/// Posts a body, asserts the violations sent to core, and returns those of the response. Core
/// returns the violations sent to it and adds one for the missing dropoff.
async fn violations(body: impl Into<bytes::Bytes>, expected: &[(&str, &str)]) -> Value {
    let platform = Platform::start().await;
    let found = expected
        .iter()
        .chain(&[("dropoff", "REQUIRED")])
        .map(|(field, reason)| FieldViolation {
            field: (*field).to_owned(),
            description: "is wrong".to_owned(),
            reason: (*reason).to_owned(),
            localized_message: None,
        })
        .collect::<Vec<_>>();
    platform.core.will_fail(core_status_with(
        Code::InvalidArgument,
        "VALIDATION_FAILED",
        "violations",
        ErrorDetails::with_bad_request(found),
    ));

    let reply = platform.client.post("/api/deliveries", body).await;

    assert_eq!(reply.status, 400, "{}", reply.text());
    let request: CreateDeliveryRequest = platform.core.received();
    let sent: Vec<_> = request
        .violations
        .iter()
        .map(|Violation { field, reason, .. }| (field.as_str(), reason.as_str()))
        .collect();
    assert_eq!(sent, expected);
    reply.json()["violations"].clone()
}

/// Without that of core for the missing dropoff.
#[tokio::test]
async fn a_body_that_is_not_an_object_has_that_one_violation() {
    for (body, reason) in [
        (b"".as_slice(), "REQUIRED"),
        (b" \n", "REQUIRED"),
        (b"{", "INVALID_JSON"),
        (b"{\"dropoff\": {\"address\": \"24 Rue", "INVALID_JSON"),
        (b"{} {}", "INVALID_JSON"),
        (b"{\"a\": \"\xff\xfe\"}", "INVALID_JSON"),
        (b"\x00\x01\x02", "INVALID_JSON"),
        ("[".repeat(100_000).as_bytes(), "INVALID_JSON"),
        ("{\"dropoff\":".repeat(1000).as_bytes(), "INVALID_JSON"),
        (b"[]", "WRONG_TYPE"),
        (b"null", "WRONG_TYPE"),
        (b"5", "WRONG_TYPE"),
        (b"\"text\"", "WRONG_TYPE"),
    ] {
        let violations = violations(body.to_vec(), &[("", reason)]).await;

        assert_eq!(
            violations,
            json!([{
                "propertyPath": "",
                "message": "is wrong",
                "code": reason.to_ascii_lowercase(),
            }])
        );
    }
}

#[tokio::test]
async fn a_repeated_key_is_reported_under_the_clients_property_path() {
    let violations = violations(
        r#"{"pickup": {"metadata": {"my_own": "1", "my_own": "2"}, "doneBefore": "", "doneBefore": ""},
            "pickup": {}}"#,
        &[
            ("pickup.metadata.my_own", "REPEATED"),
            ("pickup.doneBefore", "REPEATED"),
            ("pickup", "REPEATED"),
        ],
    )
    .await;

    assert_eq!(
        violations,
        json!([
            {"propertyPath": "pickup.metadata.my_own", "message": "is wrong", "code": "repeated"},
            {"propertyPath": "pickup.doneBefore", "message": "is wrong", "code": "repeated"},
            {"propertyPath": "pickup", "message": "is wrong", "code": "repeated"},
            {"propertyPath": "dropoff", "message": "is wrong", "code": "required"},
        ])
    );
}

#[tokio::test]
async fn an_unknown_member_is_ignored_with_any_value() {
    let platform = Platform::start().await;
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for unknown in [
        r#""x": 1e400"#,
        r#""x": -1e400, "x": [1e400, {"y": 1, "y": 2}]"#,
        r#""x": 1, "x": 2"#,
        r#""x": "\ud800""#,
        &format!(r#""x": {deep}"#),
    ] {
        for body in [
            format!(r#"{{{unknown}, "externalReference": "7"}}"#),
            format!(
                r#"{{"pickup": {{"address": {{"geo": {{"latitude": 1, "longitude": 2, {unknown}}},
                    {unknown}}}, "packages": [{{"type": "XL", {unknown}}}], {unknown}}},
                    "externalReference": "7"}}"#
            ),
        ] {
            platform.core.will_respond(delivery());

            let reply = platform.client.post("/api/deliveries", body.clone()).await;

            assert_eq!(reply.status, 201, "{body}: {}", reply.text());
            let request: CreateDeliveryRequest = platform.core.received();
            let delivery = request.delivery.unwrap();
            assert_eq!(delivery.external_reference.as_deref(), Some("7"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_value_that_no_type_can_hold_is_no_json() {
    for value in ["1e400", "-1e400", r#""\ud800""#, r#""\udc00\ud800""#] {
        let body = format!(r#"{{"dropoff": {{"weight": {value}}}}}"#);

        let found = violations(body, &[("", "INVALID_JSON")]).await;

        assert_eq!(found[0]["propertyPath"], "");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped() {
    let platform = Platform::start().await;
    platform.core.will_respond(delivery());

    let body = "\u{feff}{\"externalReference\": \"7\"}";
    let reply = platform.client.post("/api/deliveries", body).await;

    assert_eq!(reply.status, 201, "{}", reply.text());
    let delivery = platform.core.received::<CreateDeliveryRequest>().delivery;
    assert_eq!(delivery.unwrap().external_reference.as_deref(), Some("7"));
}

#[tokio::test]
async fn malformed_utf_8_and_malformed_json_have_messages_of_their_own() {
    let platform = Platform::start().await;
    for (body, message) in [
        (
            b"{\"a\": \"\xff\"}".to_vec(),
            "the body is not UTF-8: byte 8 is malformed",
        ),
        (
            b"{\"a\": 01}".to_vec(),
            "the body is not JSON: invalid number at line 1 column 8, in a",
        ),
        (
            br#"{"dropoff": {"comments": "caf\ud83d"}}"#.to_vec(),
            "the body is not JSON: unexpected end of hex escape at line 1 column 36, in dropoff.comments",
        ),
        // With the number as the client wrote it, at its end or where it becomes too large.
        (
            br#"{"dropoff": {"weight": 1e400}}"#.to_vec(),
            "the body is not JSON: number 1e400 out of range at line 1 column 28, in dropoff.weight",
        ),
        (
            b"{\"dropoff\": {\n\"weight\": -1.5E+99999999999}}".to_vec(),
            "the body is not JSON: number -1.5E+99999999999 out of range at line 2 column 26, in dropoff.weight",
        ),
    ] {
        platform.core.will_return_violations();

        let reply = platform.client.post("/api/deliveries", body).await;

        assert_eq!(
            reply.json()["violations"],
            json!([{"propertyPath": "", "message": message, "code": "invalid_json"}])
        );
    }
}

#[tokio::test]
async fn at_most_100_violations_are_reported() {
    let packages = vec![json!({"type": 1, "quantity": 1}); 1000];
    let key = "k".repeat(100_000);
    let body = json!({"dropoff": {"metadata": {key: 1}, "packages": packages}});
    let platform = Platform::start().await;
    platform.core.will_return_violations();

    let reply = platform
        .client
        .post("/api/deliveries", body.to_string())
        .await;

    assert_eq!(reply.status, 400);
    let error = reply.json();
    let violations = error["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 100);
    let last = &violations[99]["propertyPath"];
    assert_eq!(*last, json!("dropoff.packages[99].type"));
}

#[tokio::test]
async fn a_long_key_is_truncated_in_its_violation() {
    let key = "k".repeat(100_000);
    let body = format!(r#"{{"pickup": {{"metadata": {{"{key}": "1", "{key}": "2"}}}}}}"#);
    let platform = Platform::start().await;
    platform.core.will_return_violations();

    let reply = platform.client.post("/api/deliveries", body).await;

    assert_eq!(
        reply.json()["violations"],
        json!([{
            "propertyPath": format!("pickup.metadata.{}…", "k".repeat(184)),
            "message": "must occur only once",
            "code": "repeated",
        }])
    );
}

#[tokio::test]
async fn a_large_body_that_is_not_needed_does_not_prevent_the_response() {
    let platform = Platform::start().await;
    for (path, content_type, status) in [
        ("/nowhere", "application/json", 404),
        ("/api/tasks/1", "application/json", 405),
        ("/api/deliveries", "text/plain", 415),
    ] {
        let request = platform
            .client
            .request(http::Method::POST, path)
            .header("content-type", content_type);
        let reply = platform.client.send(request, vec![b' '; 4 << 20]).await;

        assert_eq!(reply.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_one_at_it_is_read() {
    let platform = Platform::start_with(|config| config.max_body = 1000).await;
    for client in [
        Client::new(platform.gateway.addr),
        Client::http2(platform.gateway.addr),
    ] {
        // 500 because no response of core is scripted.
        for (size, status) in [(1000, 500), (1001, 413), (7000, 413)] {
            let reply = client
                .post("/api/deliveries", format!("{:size$}", "{}"))
                .await;

            assert_eq!(reply.status, status, "{size}");
            if status == 413 {
                assert_eq!(reply.error()["code"], "payload_too_large");
                assert_eq!(
                    reply.error()["detail"],
                    "the body is larger than 1000 bytes"
                );
            } else {
                let request: CreateDeliveryRequest = platform.core.received();
                assert_eq!(request.delivery, Some(DeliveryDraft::default()));
            }
        }
    }
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected_before_it_is_sent_if_the_client_expects_100_continue() {
    let platform = Platform::start().await;

    let response = platform
        .client
        .send_raw(
            b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
              Authorization: Bearer a\r\nContent-Length: 1048577\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        )
        .await;

    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_408() {
    let platform = Platform::start_with(|config| {
        config.read_timeout = std::time::Duration::from_millis(100);
    })
    .await;

    let response = platform
        .client
        .send_raw(
            b"POST /api/deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
              Authorization: Bearer a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{",
        )
        .await;

    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert!(
        response.contains("\"code\":\"request_timeout\""),
        "{response}"
    );
}
