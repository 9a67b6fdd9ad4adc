//! Why a client gets no token.

use base64::{Engine, engine::general_purpose::STANDARD};
use delivery::Credentials;
use jiff::SignedDuration;
use serde_json::json;

use super::{FORM, GRANT, ask, filled_in, is_json};
use crate::harness::{Answer, Database, Faults, Platform};

/// Error, credentials for Basic, form.
const REFUSED: &str = "
invalid_client         -             GRANT
invalid_client         -             GRANT&client_id=KEY
invalid_client         -             GRANT&client_id=KEY&client_secret=x
invalid_client         nobody:SECRET GRANT
invalid_client         KEY:wrong     GRANT
invalid_client         KEY:          GRANT
invalid_client         :SECRET       GRANT
invalid_client         KEY:SECRETx   GRANT
invalid_client         KEY:%00       GRANT
invalid_client         a%00b:SECRET  GRANT
invalid_client         KEY           GRANT
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
async fn a_refused_token_request_says_why_in_the_words_of_rfc_6749() {
    let platform = Platform::start(Database::sqlite()).await;
    let stranger = platform.stranger();
    let mut faults = Faults::default();

    for case in REFUSED.trim().lines() {
        let line = filled_in(case, &platform.demo_client);
        let mut words = line.split_whitespace();
        let [error, credentials] = [(); 2].map(|()| words.next().unwrap());
        let form = words.next().unwrap_or_default().to_owned();
        let authorization = format!("Basic {}", STANDARD.encode(credentials));
        let mut headers = vec![FORM];
        headers.extend((credentials != "-").then_some(("authorization", &*authorization)));

        let answer = ask(&stranger, "/oauth2/token", &headers, form).await;

        refused(&mut faults, case, &answer, error);
        if credentials != "-" && error == "invalid_client" {
            let challenge = answer.header("www-authenticate");
            faults.equal(case, challenge, r#"Basic realm="OAuth""#);
        }
    }
    let not_text = format!("Basic {}", STANDARD.encode([0xff, b':', 0xfe]));
    for authorization in ["Basic ***", "Basic", "Basic ", "Bearer x", "", &not_text] {
        let headers = [FORM, ("authorization", authorization)];
        let answer = ask(&stranger, "/oauth2/token", &headers, GRANT).await;
        refused(&mut faults, authorization, &answer, "invalid_client");
    }

    faults.none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_request_is_a_form_and_nothing_in_the_url_counts() {
    let platform = Platform::start(Database::sqlite()).await;
    let stranger = platform.stranger();
    let in_url = filled_in("client_id=KEY&client_secret=SECRET", &platform.demo_client);
    let in_url = format!("/oauth2/token?{in_url}");
    let credentials = filled_in("KEY:SECRET", &platform.demo_client);
    let authorization = format!("Basic {}", STANDARD.encode(credentials));
    let good = ("authorization", &*authorization);
    let json = ("content-type", "application/json");
    let json_body = json!({ "grant_type": "client_credentials" }).to_string();
    let mut faults = Faults::default();

    let answer = ask(&stranger, &in_url, &[FORM], GRANT).await;
    refused(
        &mut faults,
        "credentials in the URL",
        &answer,
        "invalid_client",
    );
    let grant_in_url = format!("/oauth2/token?{GRANT}&scope=deliveries");
    let answer = ask(&stranger, &grant_in_url, &[FORM, good], "").await;
    refused(
        &mut faults,
        "the grant in the URL",
        &answer,
        "invalid_request",
    );
    let answer = ask(&stranger, "/oauth2/token", &[json, good], json_body).await;
    refused(&mut faults, "JSON", &answer, "invalid_request");
    let answer = ask(&stranger, "/oauth2/token", &[json, good], GRANT).await;
    refused(
        &mut faults,
        "a form that is called JSON",
        &answer,
        "invalid_request",
    );
    for value in [b"\xff\xfe".as_slice(), b"%ff%fe", b"%zz"] {
        let body = [GRANT.as_bytes(), b"&scope=", value].concat();
        let answer = ask(&stranger, "/oauth2/token", &[FORM, good], body).await;
        faults.equal("not UTF-8", answer.status, 400);
        faults.holds("not UTF-8", answer.json["error"].is_string(), &answer.json);
    }
    // Said of every endpoint, so in the form of every endpoint.
    let answer = ask(
        &stranger,
        "/oauth2/token",
        &[FORM, good],
        vec![b'&'; 1_100_000],
    )
    .await;
    faults.failure("more than a mebibyte", &answer, 413);

    faults.none();
    platform.stop().await;
}

on_both_databases! {
    async fn unknown_mistaken_and_disabled_clients_are_refused_alike(platform: &Platform) {
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let credentials = operator.create_client(&platform.store, &scopes).await;
        let client = platform.client_of(&credentials, &scopes).await;
        assert_eq!(client.get("/api/time_slots/choices").await.status, 200);

        platform.disable(&credentials).await;

        let stranger = platform.stranger();
        let form = [("grant_type", "client_credentials")];
        let disabled = stranger.ask_for_token(&credentials, &form).await;
        let mistaken = Credentials {
            api_secret: "wrong".to_owned(),
            ..platform.demo_client.clone()
        };
        let mistaken = stranger.ask_for_token(&mistaken, &form).await;
        let unknown = Credentials {
            api_key: "nobody".to_owned(),
            ..platform.demo_client.clone()
        };
        let unknown = stranger.ask_for_token(&unknown, &form).await;
        assert_eq!(disabled.status, 401);
        assert_eq!(disabled.json["error"], "invalid_client");
        for other in [mistaken, unknown] {
            assert_eq!((other.status, other.body), (disabled.status, disabled.body.clone()));
        }

        // Tokens it still has stop within a minute.
        platform.advance(SignedDuration::from_secs(61));
        assert_eq!(client.get("/api/time_slots/choices").await.status, 401);
    }
}

/// RFC 6749 §5.2, with the description once more as `message`.
fn refused(faults: &mut Faults, case: &str, answer: &Answer, error: &str) {
    let status = if error == "invalid_client" { 401 } else { 400 };
    faults.equal(case, answer.status, status);
    let description = &answer.json["error_description"];
    let expected = json!({
        "error": error, "error_description": description, "message": description,
    });
    faults.equal(case, &answer.json, &expected);
    let is_described = description.as_str().is_some_and(|text| !text.is_empty());
    faults.holds(case, is_described, "no description");
    is_json(faults, case, answer);
}
