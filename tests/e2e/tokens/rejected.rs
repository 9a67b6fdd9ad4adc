//! Rejected token requests.

use base64::{Engine, engine::general_purpose::STANDARD};
use delivery::Credentials;
use jiff::SignedDuration;
use serde_json::json;

use super::{FORM, GRANT, check_json, expand, post};
use crate::harness::{Database, Mismatches, Platform, Response};

/// Rows of the error, the Basic credentials (`-` for none) and the form, with the placeholders of
/// [`expand`].
const REJECTED: &str = "
invalid_client         -             GRANT
invalid_client         -             GRANT&client_id=KEY
invalid_client         -             GRANT&client_id=KEY&client_secret=x
invalid_client         other:SECRET  GRANT
invalid_client         KEY:wrong     GRANT
invalid_client         KEY:          GRANT
invalid_client         :SECRET       GRANT
invalid_client         KEY:SECRETx   GRANT
invalid_client         KEY:%00       GRANT
invalid_client         a%00b:SECRET  GRANT
invalid_client         KEY           GRANT
invalid_client         -             GRANT&client_id=LONG&client_secret=SECRET
invalid_request        KEY:SECRET    GRANT&client_id=KEY&client_secret=SECRET
invalid_request        KEY:SECRET    scope=deliveries
invalid_request        KEY:SECRET    grant_type=&scope=deliveries
invalid_request        KEY:SECRET
invalid_request        KEY:SECRET    GRANT&GRANT
invalid_request        KEY:SECRET    GRANT&scope=tasks&scope=deliveries
invalid_request        -             GRANT&client_id=KEY&client_secret=SECRET&client_id=KEY
invalid_request        KEY:SECRET    GRANT&x=1&x=1
unsupported_grant_type KEY:SECRET    grant_type=password&username=a&password=b
unsupported_grant_type KEY:SECRET    grant_type=authorization_code&code=a
unsupported_grant_type KEY:SECRET    grant_type=CLIENT_CREDENTIALS
invalid_scope          KEY:SECRET    GRANT&scope=everything
invalid_scope          KEY:SECRET    GRANT&scope=DELIVERIES
invalid_scope          KEY:SECRET    GRANT&scope=tasks%3Aall
invalid_scope          KEY:SECRET    GRANT&scope=deliveries+admin
invalid_scope          KEY:SECRET    GRANT&scope=deliveries%2Ctasks
invalid_scope          KEY:SECRET    GRANT&scope=a%00
invalid_scope          KEY:SECRET    GRANT&scope=%22
invalid_scope          KEY:SECRET    GRANT&scope=LONG
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_token_request_has_an_error_of_rfc_6749() {
    let platform = Platform::start(Database::sqlite()).await;
    let anonymous = platform.anonymous_client();
    let mut mismatches = Mismatches::default();

    for case in REJECTED.trim().lines() {
        let line = expand(case, &platform.demo_client);
        let mut words = line.split_whitespace();
        let [error, credentials] = [(); 2].map(|()| words.next().unwrap());
        let form = words.next().unwrap_or_default().to_owned();
        let authorization = format!("Basic {}", STANDARD.encode(credentials));
        let mut headers = vec![FORM];
        headers.extend((credentials != "-").then_some(("authorization", &*authorization)));

        let response = post(&anonymous, "/oauth2/token", &headers, form).await;

        check_rejection(&mut mismatches, case, &response, error);
        if credentials != "-" && error == "invalid_client" {
            let challenge = response.header("www-authenticate");
            mismatches.check_eq(case, challenge, r#"Basic realm="OAuth""#);
        }
    }
    let not_text = format!("Basic {}", STANDARD.encode([0xff, b':', 0xfe]));
    for authorization in ["Basic ***", "Basic", "Basic ", "Bearer x", "", &not_text] {
        let headers = [FORM, ("authorization", authorization)];
        let response = post(&anonymous, "/oauth2/token", &headers, GRANT).await;
        check_rejection(&mut mismatches, authorization, &response, "invalid_client");
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_request_is_a_form_and_the_query_is_ignored() {
    let platform = Platform::start(Database::sqlite()).await;
    let anonymous = platform.anonymous_client();
    let in_url = expand("client_id=KEY&client_secret=SECRET", &platform.demo_client);
    let in_url = format!("/oauth2/token?{in_url}");
    let credentials = expand("KEY:SECRET", &platform.demo_client);
    let authorization = format!("Basic {}", STANDARD.encode(credentials));
    let authorized = ("authorization", &*authorization);
    let json = ("content-type", "application/json");
    let json_body = json!({ "grant_type": "client_credentials" }).to_string();
    let mut mismatches = Mismatches::default();

    let response = post(&anonymous, &in_url, &[FORM], GRANT).await;
    check_rejection(
        &mut mismatches,
        "credentials in the URL",
        &response,
        "invalid_client",
    );
    let grant_in_url = format!("/oauth2/token?{GRANT}&scope=deliveries");
    let response = post(&anonymous, &grant_in_url, &[FORM, authorized], "").await;
    check_rejection(
        &mut mismatches,
        "the grant in the URL",
        &response,
        "invalid_request",
    );
    let response = post(&anonymous, "/oauth2/token", &[json, authorized], json_body).await;
    check_rejection(&mut mismatches, "JSON", &response, "invalid_request");
    let response = post(&anonymous, "/oauth2/token", &[json, authorized], GRANT).await;
    check_rejection(
        &mut mismatches,
        "a form with the media type JSON",
        &response,
        "invalid_request",
    );
    for value in [b"\xff\xfe".as_slice(), b"%ff%fe", b"%zz"] {
        let body = [GRANT.as_bytes(), b"&scope=", value].concat();
        let response = post(&anonymous, "/oauth2/token", &[FORM, authorized], body).await;
        mismatches.check_eq("not UTF-8", response.status, 400);
        mismatches.check(
            "not UTF-8",
            response.json["error"].is_string(),
            &response.json,
        );
    }
    // The body limit applies to every endpoint, so the error has the general format.
    let response = post(
        &anonymous,
        "/oauth2/token",
        &[FORM, authorized],
        vec![b'&'; 1_100_000],
    )
    .await;
    mismatches.check_error("more than a mebibyte", &response, 413);

    mismatches.assert_none();
    platform.stop().await;
}

on_both_databases! {
    async fn unknown_clients_wrong_secrets_and_disabled_clients_get_the_same_error(platform: &Platform) {
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let credentials = operator.create_client(&platform.store, &scopes).await;
        let client = platform.client_for(&credentials, &scopes).await;
        assert_eq!(client.get("/api/time_slots/choices").await.status, 200);

        platform.operator().await.disable_client(&credentials).await;

        let anonymous = platform.anonymous_client();
        let form = [("grant_type", "client_credentials")];
        let disabled = anonymous.request_token(&credentials, &form).await;
        let wrong_secret = Credentials {
            api_secret: "wrong".to_owned(),
            ..platform.demo_client.clone()
        };
        let wrong_secret = anonymous.request_token(&wrong_secret, &form).await;
        let unknown = Credentials {
            api_key: "unknown".to_owned(),
            ..platform.demo_client.clone()
        };
        let unknown = anonymous.request_token(&unknown, &form).await;
        assert_eq!(disabled.status, 401);
        assert_eq!(disabled.json["error"], "invalid_client");
        for other in [wrong_secret, unknown] {
            assert_eq!((other.status, other.body), (disabled.status, disabled.body.clone()));
        }

        // Its existing tokens stop working within a minute.
        platform.advance(SignedDuration::from_secs(61));
        assert_eq!(client.get("/api/time_slots/choices").await.status, 401);
    }
}

/// Checks an error of RFC 6749 §5.2 that repeats the description as `message`.
fn check_rejection(mismatches: &mut Mismatches, case: &str, response: &Response, error: &str) {
    let status = if error == "invalid_client" { 401 } else { 400 };
    mismatches.check_eq(case, response.status, status);
    let description = &response.json["error_description"];
    let expected = json!({
        "error": error, "error_description": description, "message": description,
    });
    mismatches.check_eq(case, &response.json, &expected);
    let is_described = description.as_str().is_some_and(|text| !text.is_empty());
    mismatches.check(case, is_described, "no description");
    check_json(mismatches, case, response);
}
