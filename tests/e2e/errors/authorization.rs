//! 401 without a token that the platform signed, 403 without the required scope.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hyper::{Method, Request, header::AUTHORIZATION};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{UNKNOWN_ID, draft, iri};
use crate::harness::{
    Database, Mismatches, Platform,
    token::{altered, decoded},
};

/// An Ed25519 private key (PKCS #8) that the platform does not have.
const OTHER_KEY: &str = "MC4CAQAwBQYDK2VwBCIEINgqiyae80Q6kQsfs52OSa/iXn2tww/Zd0Xp450Fv/kX";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_an_endpoint_that_is_not_public_is_401() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let delivery = client.create_delivery(draft()).await;
    let task = iri(&delivery["pickup"]).to_owned();
    let price = client
        .post("/api/retail_prices/calculate", draft())
        .await
        .expect(200);
    let webhook = client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await;
    let mut mismatches = Mismatches::default();

    let notification = format!("/api/notifications/{UNKNOWN_ID}");
    let anonymous = platform.anonymous_client();
    for (method, path, body) in [
        (Method::POST, "/api/deliveries", draft()),
        (Method::GET, iri(&delivery), json!(null)),
        (Method::GET, &*task, json!(null)),
        (Method::PUT, &*format!("{task}/done"), json!({})),
        (Method::POST, "/api/retail_prices/calculate", draft()),
        (Method::GET, iri(&price), json!(null)),
        (Method::GET, "/api/time_slots/choices", json!(null)),
        (Method::GET, "/api/deliveries", json!(null)),
        (Method::DELETE, iri(&delivery), json!(null)),
        (Method::POST, "/api/deliveries/assert", draft()),
        (Method::GET, "/api/me", json!(null)),
        (Method::GET, "/api/events", json!(null)),
        (Method::GET, "/api/webhooks", json!(null)),
        (
            Method::GET,
            &*format!("{}/notifications", iri(&webhook)),
            json!(null),
        ),
        (Method::POST, &*format!("{}/test", iri(&webhook)), json!({})),
        (Method::GET, &*notification, json!(null)),
        (Method::POST, &*format!("{notification}/resend"), json!({})),
        (
            Method::POST,
            &*format!("{}/recover", iri(&webhook)),
            json!({}),
        ),
        (
            Method::POST,
            "/api/webhooks",
            json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/" }),
        ),
        (Method::GET, iri(&webhook), json!(null)),
        (Method::DELETE, iri(&webhook), json!(null)),
        (
            Method::POST,
            &*format!("{}/enable", iri(&webhook)),
            json!({}),
        ),
        (
            Method::POST,
            &*format!("{}/disable", iri(&webhook)),
            json!({}),
        ),
        (
            Method::POST,
            &*format!("{}/rotate_secret", iri(&webhook)),
            json!({}),
        ),
        (
            Method::POST,
            &*format!("{}/confirm_secret", iri(&webhook)),
            json!({}),
        ),
    ] {
        let case = format!("{method} {path:.60}");
        let response = anonymous
            .send(anonymous.request(method, path), body.to_string())
            .await;
        mismatches.check_error(&case, &response, 401);
        // RFC 6750 §3.1: no error code if the request had no credentials.
        let challenge = response.header("www-authenticate");
        let is_expected = challenge.starts_with("Bearer") && !challenge.contains("error=");
        mismatches.check(case, is_expected, challenge);
    }

    let token = client.token();
    for (case, authorization) in [
        ("Basic", format!("Basic {}", STANDARD.encode("a:b"))),
        ("another scheme", format!("Token {token}")),
        ("no scheme", token.to_owned()),
        ("no token", "Bearer".to_owned()),
        ("an empty value", String::new()),
    ] {
        let request = Request::get(client.url(&task)).header(AUTHORIZATION, authorization);
        let response = anonymous.send(request, "").await;
        mismatches.check_error(case, &response, 401);
        let challenge = response.header("www-authenticate");
        mismatches.check(case, challenge.starts_with("Bearer"), challenge);
    }
    let in_the_url = anonymous.get(&format!("{task}?access_token={token}")).await;
    mismatches.check_error("a token in the URL", &in_the_url, 401);
    let lower_case =
        Request::get(client.url(&task)).header(AUTHORIZATION, format!("bearer {token}"));
    mismatches.check_eq("bearer", anonymous.send(lower_case, "").await.status, 200);
    client.get(&task).await.expect(200);

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_not_signed_by_the_platform_is_401_invalid_token() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let task = iri(&client.create_delivery(draft()).await["pickup"]).to_owned();
    let mut mismatches = Mismatches::default();

    for (case, token) in forged_tokens(client.token()) {
        for path in [&*task, "/api/time_slots/choices"] {
            let response = client.with_token(&token).get(path).await;
            mismatches.check_error(format!("{case} {path}"), &response, 401);
            let challenge = response.header("www-authenticate");
            let is_expected =
                challenge.starts_with("Bearer ") && challenge.contains(r#"error="invalid_token""#);
            mismatches.check(case, is_expected, challenge);
        }
    }
    let not_text = [
        b"Bearer \xff\xfe".as_slice(),
        b"Bearer \xc3\xa9.\xc3\xa9.\xc3\xa9",
    ];
    for bytes in not_text {
        let request = Request::get(client.url(&task)).header(AUTHORIZATION, bytes);
        mismatches.check_error("not ASCII", &client.send(request, "").await, 401);
    }

    client.get(&task).await.expect(200);
    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_without_the_required_scope_is_403_and_the_scope_is_named() {
    let platform = Platform::start(Database::sqlite()).await;
    let both = platform.client().await;
    let deliveries = platform
        .client_for(&platform.demo_client, &["deliveries"])
        .await;
    let tasks = platform.client_for(&platform.demo_client, &["tasks"]).await;
    let delivery = deliveries.create_delivery(draft()).await;
    let task = iri(&delivery["pickup"]);
    let price = deliveries
        .post("/api/retail_prices/calculate", draft())
        .await
        .expect(200);
    let done = format!("{task}/done");
    let mut mismatches = Mismatches::default();

    for (client, method, path, scope) in [
        (&deliveries, Method::GET, task, "tasks"),
        (&tasks, Method::POST, "/api/deliveries", "deliveries"),
        (&tasks, Method::GET, iri(&delivery), "deliveries"),
        (
            &tasks,
            Method::POST,
            "/api/retail_prices/calculate",
            "deliveries",
        ),
        (&tasks, Method::GET, iri(&price), "deliveries"),
        (&tasks, Method::GET, "/api/time_slots/choices", "deliveries"),
        (&both, Method::PUT, &*done, "tasks:all"),
    ] {
        let case = format!("{method} {path:.60}");
        let response = client
            .send(client.request(method, path), draft().to_string())
            .await;
        mismatches.check_error(&case, &response, 403);
        let challenge = response.header("www-authenticate");
        let expected = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
        mismatches.check_eq(&case, challenge, &*expected);
    }
    assert_eq!(both.get(task).await.expect(200)["status"], "TODO");

    // Webhooks need no scope: every client manages its own.
    for client in [&deliveries, &tasks] {
        let webhook = client
            .create_webhook("delivery.completed", "http://127.0.0.1:9/")
            .await;
        mismatches.check_eq("read", client.get(iri(&webhook)).await.status, 200);
        mismatches.check_eq("delete", client.delete(iri(&webhook)).await.status, 204);
    }

    mismatches.assert_none();
    platform.stop().await;
}

/// Forged tokens made from a valid one, with their names.
fn forged_tokens(valid: &str) -> Vec<(&'static str, String)> {
    let parts: Vec<_> = valid.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        panic!("{valid}");
    };
    let kid = decoded(valid, 0)["kid"].as_str().unwrap().to_owned();
    let claims_json = decoded(valid, 1);
    let mut extended = claims_json.clone();
    extended["scopes"] = json!(["tasks:all", "admin"]);
    extended["scope"] = json!("tasks:all admin");
    let unsigned = |alg: &str| {
        let header = json!({ "alg": alg, "typ": "at+jwt", "kid": kid });
        format!("{}.{claims}.", encoded(&header))
    };
    let signed = |algorithm: Algorithm, kid: Option<&str>, key: &EncodingKey| {
        let header = Header {
            typ: Some("at+jwt".to_owned()),
            kid: kid.map(str::to_owned),
            ..Header::new(algorithm)
        };
        jsonwebtoken::encode(&header, &claims_json, key).unwrap()
    };
    let other_key = EncodingKey::from_ed_der(&STANDARD.decode(OTHER_KEY).unwrap());
    let half = &signature[..signature.len() / 2];

    vec![
        ("alg none", unsigned("none")),
        ("alg None", unsigned("None")),
        (
            "alg none with the signature",
            format!("{}{signature}", unsigned("none")),
        ),
        ("alg EdDSA without signature", unsigned("EdDSA")),
        ("an unknown alg", unsigned("XX999")),
        (
            "another key",
            signed(Algorithm::EdDSA, Some(&kid), &other_key),
        ),
        (
            "another key with another key id",
            signed(Algorithm::EdDSA, Some("theirs"), &other_key),
        ),
        (
            "another key without a key id",
            signed(Algorithm::EdDSA, None, &other_key),
        ),
        (
            "a path as key id",
            signed(Algorithm::EdDSA, Some("../../dev/null"), &other_key),
        ),
        (
            "HS256 with an empty key",
            signed(Algorithm::HS256, Some(&kid), &EncodingKey::from_secret(b"")),
        ),
        (
            "HS256 with the key id as key",
            signed(
                Algorithm::HS256,
                Some(&kid),
                &EncodingKey::from_secret(kid.as_bytes()),
            ),
        ),
        (
            "added scopes",
            format!("{header}.{}.{signature}", encoded(&extended)),
        ),
        ("half a signature", format!("{header}.{claims}.{half}")),
        (
            "an altered signature",
            altered(valid, valid.len() - half.len()),
        ),
        ("no signature", format!("{header}.{claims}")),
        ("an empty signature", format!("{header}.{claims}.")),
        ("a fourth part", format!("{valid}.{signature}")),
        ("the header alone", header.to_owned()),
        ("dots", "..".to_owned()),
        ("a word", "token".to_owned()),
        ("a long word", "x".repeat(4096)),
        ("not Base64", "***.***.***".to_owned()),
        (
            "claims that are not JSON",
            format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("{")),
        ),
        (
            "a header that is a number",
            format!("{}.{claims}.{signature}", URL_SAFE_NO_PAD.encode("5")),
        ),
    ]
}

fn encoded(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}
