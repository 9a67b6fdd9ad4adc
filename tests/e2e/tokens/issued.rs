//! Issued tokens: response, claims, scopes and lifetime.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{FORM, check_json, expand, post};
use crate::harness::{Database, Mismatches, Platform, token::decoded};

/// Scheme, credentials, form and granted scopes. See [`expand`].
const ACCEPTED: &str = "
Basic KEY:SECRET                 GRANT&scope=deliveries               deliveries
basic KEY:SECRET                 GRANT&scope=deliveries               deliveries
BASIC KEY:SECRET                 GRANT&scope=deliveries               deliveries
Basic ENCODED_KEY:ENCODED_SECRET GRANT&scope=deliveries               deliveries
-     -      GRANT&scope=deliveries&client_id=KEY&client_secret=SECRET deliveries
-     -      client_id=ENCODED_KEY&client_secret=ENCODED_SECRET&GRANT deliveries
Basic KEY:SECRET                 GRANT&scope=tasks                    tasks
Basic KEY:SECRET                 GRANT&scope=tasks%20deliveries       deliveries tasks
Basic KEY:SECRET                 scope=deliveries+tasks&GRANT         deliveries tasks
Basic KEY:SECRET                 GRANT&scope=deliveries&audience=x    deliveries
Basic KEY:SECRET                 GRANT&scope=deliveries&client_secret= deliveries
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_response_has_type_lifetime_token_and_scope_for_every_authentication_method() {
    let platform = Platform::start(Database::sqlite()).await;
    let anonymous = platform.anonymous_client();
    let mut mismatches = Mismatches::default();

    for case in ACCEPTED.trim().lines() {
        let line = expand(case, &platform.demo_client);
        let mut words = line.split_whitespace();
        let [scheme, credentials, form] = [(); 3].map(|()| words.next().unwrap());
        let authorization = format!("{scheme} {}", STANDARD.encode(credentials));
        let mut headers = vec![FORM];
        headers.extend((scheme != "-").then_some(("authorization", &*authorization)));

        let response = post(&anonymous, "/oauth2/token", &headers, form.to_owned()).await;

        mismatches.check_eq(case, response.status, 200);
        for (name, value) in [("cache-control", "no-store"), ("pragma", "no-cache")] {
            mismatches.check_eq(case, response.header(name), value);
        }
        check_json(&mut mismatches, case, &response);
        let mut token = response.json;
        let scopes = words.collect::<Vec<_>>().join(" ");
        mismatches.check_eq(case, sorted(&token["scope"].take()), scopes);
        let lifetime = token["expires_in"].take();
        mismatches.check(case, lifetime.as_u64() > Some(0), &lifetime);
        let access_token = token["access_token"].take();
        let parts = access_token.as_str().unwrap_or_default().split('.');
        mismatches.check_eq(case, parts.count(), 3);
        let expected = json!({
            "token_type": "Bearer", "expires_in": null, "access_token": null, "scope": null,
        });
        mismatches.check_eq(case, &token, &expected);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_token_is_a_jwt_with_the_clients_claims() {
    let platform = Platform::start(Database::sqlite()).await;
    let api_key = platform.demo_client.api_key.clone();
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "deliveries tasks"),
    ];
    let mut ids = Vec::new();
    let now = platform.now().as_second();

    for _ in 0..2 {
        let token = platform
            .anonymous_client()
            .request_token(&platform.demo_client, &form)
            .await
            .expect(200);
        let access_token = token["access_token"].as_str().unwrap();
        let [header, mut claims] = [0, 1].map(|part| decoded(access_token, part));

        assert_eq!(header["typ"], "at+jwt");
        assert!(header["kid"].as_str().is_some_and(|kid| !kid.is_empty()));
        assert_ne!(header["alg"], "none");
        for identifier in ["iss", "aud", "jti", "secret_id"] {
            assert!(!claims[identifier].is_null(), "{identifier}");
        }
        ids.push(claims["jti"].clone());
        let mut scopes: Vec<String> = serde_json::from_value(claims["scopes"].clone()).unwrap();
        scopes.sort();
        assert_eq!(scopes, ["deliveries", "tasks"]);
        assert_eq!(sorted(&claims["scope"]), "deliveries tasks");
        for volatile in ["iss", "aud", "jti", "secret_id", "scope", "scopes"] {
            claims[volatile] = json!("…");
        }
        assert_eq!(
            claims,
            json!({
                "iss": "…", "aud": "…", "sub": api_key, "client_id": api_key, "jti": "…",
                "secret_id": "…",
                "iat": now, "nbf": now, "exp": now + token["expires_in"].as_i64().unwrap(),
                "scopes": "…", "scope": "…",
            })
        );
    }

    assert_ne!(ids[0], ids[1]);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_scope_gets_deliveries_or_else_all_the_clients_scopes() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    let tracker = operator.create_client(&platform.store, &["tasks"]).await;
    let mut mismatches = Mismatches::default();

    for (case, credentials, scope) in [
        ("deliveries tasks", &platform.demo_client, "deliveries"),
        ("tasks", &tracker, "tasks"),
        (
            "tasks:all admin",
            &platform.operator_client,
            "admin tasks:all",
        ),
    ] {
        for form in [&[][..], &[("scope", "")]] {
            let mut form = form.to_vec();
            form.push(("grant_type", "client_credentials"));
            let response = platform
                .anonymous_client()
                .request_token(credentials, &form)
                .await;

            mismatches.check_eq(case, response.status, 200);
            mismatches.check_eq(case, sorted(&response.json["scope"]), scope.to_owned());
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_valid_for_expires_in_seconds() {
    let platform = Platform::start(Database::sqlite()).await;
    let form = [("grant_type", "client_credentials")];
    let token = platform
        .anonymous_client()
        .request_token(&platform.demo_client, &form)
        .await
        .expect(200);
    let client = platform
        .anonymous_client()
        .with_token(token["access_token"].as_str().unwrap());

    platform.advance(SignedDuration::from_secs(
        token["expires_in"].as_i64().unwrap() - 1,
    ));
    assert_eq!(client.get("/api/time_slots/choices").await.status, 200);
    platform.advance(SignedDuration::from_secs(1));
    let expired = client.get("/api/time_slots/choices").await;

    let mut mismatches = Mismatches::default();
    mismatches.check_error("expired", &expired, 401);
    let challenge = expired.header("www-authenticate");
    let is_expected =
        challenge.starts_with("Bearer ") && challenge.contains(r#"error="invalid_token""#);
    mismatches.check("expired", is_expected, challenge);
    mismatches.assert_none();
    platform.stop().await;
}

/// Space-separated words in alphabetical order.
fn sorted(words: &Value) -> String {
    let mut words: Vec<_> = words.as_str().unwrap_or_default().split(' ').collect();
    words.sort_unstable();
    words.join(" ")
}
