//! `/oauth2` (specification, "Authentication"; RFC 6749).

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_STANDARD_NO_PAD};
use http::Method;
use proto::{AccessToken, IssueTokenRequest, ListPublicKeysRequest, ListPublicKeysResponse};
use serde_json::json;
use tonic::{Code, Status};

use crate::harness::{Platform, Reply, samples::core_status};

const GRANT: &str = "grant_type=client_credentials&scope=tasks%20deliveries";

fn basic(credentials: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(credentials))
}

fn token() -> AccessToken {
    AccessToken {
        access_token: "e30.e30.c2ln".to_owned(),
        expires_in: 3600,
        scopes: vec!["tasks".to_owned(), "deliveries".to_owned()],
    }
}

fn token_request(api_key: &str, api_secret: &str, scopes: &[&str]) -> IssueTokenRequest {
    IssueTokenRequest {
        api_key: api_key.to_owned(),
        api_secret: api_secret.to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    }
}

fn assert_token_error(reply: &Reply, status: u16, error: &str, description: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(
        reply.json(),
        json!({"error": error, "error_description": description, "message": description})
    );
    assert_not_cached(reply);
    let challenge = (status == 401).then_some("Basic realm=\"OAuth\"");
    assert_eq!(reply.header("www-authenticate"), challenge);
}

fn assert_not_cached(reply: &Reply) {
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("pragma"), Some("no-cache"));
}

#[tokio::test]
async fn a_token_is_issued_for_basic_credentials() {
    let platform = Platform::start().await;
    platform.core.will_respond(token());

    let reply = platform
        .client
        .post_form("/oauth2/token", GRANT, Some(&basic("key:secret")))
        .await;

    assert_eq!(reply.status, 200);
    assert_not_cached(&reply);
    assert_eq!(
        reply.json(),
        json!({
            "access_token": "e30.e30.c2ln",
            "token_type": "Bearer",
            "expires_in": 3600,
            "scope": "tasks deliveries",
        })
    );
    let (metadata, request) = platform.core.received_with_metadata::<IssueTokenRequest>();
    assert_eq!(
        request,
        token_request("key", "secret", &["tasks", "deliveries"])
    );
    assert!(metadata.get("authorization").is_none());
}

#[tokio::test]
async fn credentials_are_read_from_the_header_or_the_body() {
    let unpadded = format!("Basic {}", BASE64_STANDARD_NO_PAD.encode("key:secret"));
    for (authorization, body, expected) in [
        (
            Some(basic("key:se:cret")),
            "",
            token_request("key", "se:cret", &[]),
        ),
        (Some(unpadded), "", token_request("key", "secret", &[])),
        (
            Some(basic("key:secret").replace("Basic", "bAsIc")),
            "",
            token_request("key", "secret", &[]),
        ),
        (
            Some(basic("k%C3%A9y:a%3Ab+c%25")),
            "",
            token_request("kéy", "a:b c%", &[]),
        ),
        (
            Some(basic("key:100%")),
            "",
            token_request("key", "100%", &[]),
        ),
        (Some(basic(":")), "", token_request("", "", &[])),
        (
            Some(basic("key:secret")),
            "&client_id=key&client_secret=",
            token_request("key", "secret", &[]),
        ),
        (
            None,
            "&client_id=k%20y&client_secret=s%2Bt",
            token_request("k y", "s+t", &[]),
        ),
        (
            None,
            "&client_id=key&client_secret=secret&scope=++tasks+++deliveries+",
            token_request("key", "secret", &["tasks", "deliveries"]),
        ),
    ] {
        let platform = Platform::start().await;
        platform.core.will_respond(token());

        let body = format!("grant_type=client_credentials{body}");
        let reply = platform
            .client
            .post_form("/oauth2/token", &body, authorization.as_deref())
            .await;

        assert_eq!(reply.status, 200, "{authorization:?} {body}");
        assert_eq!(platform.core.received::<IssueTokenRequest>(), expected);
    }
}

#[tokio::test]
async fn an_invalid_token_request_is_rejected_without_a_call_to_core() {
    const TWO_WAYS: &str =
        "use one way to authenticate: HTTP Basic, or client_id and client_secret in the body";
    const NO_CREDENTIALS: &str = "client credentials are missing: send them by HTTP Basic, or as client_id and client_secret in the body";
    const BASIC: &str =
        "the Authorization header must be Basic, followed by the Base64 of key:secret";
    const MISSING: &str = "grant_type is missing; it must be client_credentials";

    let platform = Platform::start().await;
    let valid = basic("key:secret");
    for (authorization, body, (status, error, description)) in [
        (None, GRANT, (401, "invalid_client", NO_CREDENTIALS)),
        (
            None,
            "grant_type=client_credentials&client_id=key",
            (401, "invalid_client", NO_CREDENTIALS),
        ),
        (Some("Basic !!!"), GRANT, (401, "invalid_client", BASIC)),
        (Some("Basic"), GRANT, (401, "invalid_client", BASIC)),
        (
            Some("Basic bm9jb2xvbg=="),
            GRANT,
            (401, "invalid_client", BASIC),
        ),
        (
            Some("Basic /////w=="),
            GRANT,
            (401, "invalid_client", BASIC),
        ),
        (
            Some("Bearer e30.e30.c2ln"),
            GRANT,
            (401, "invalid_client", BASIC),
        ),
        (
            Some(valid.as_str()),
            "grant_type=client_credentials&client_id=key&client_secret=secret",
            (400, "invalid_request", TWO_WAYS),
        ),
        (
            Some(valid.as_str()),
            "grant_type=client_credentials&client_id=other",
            (400, "invalid_request", TWO_WAYS),
        ),
        (Some(valid.as_str()), "", (400, "invalid_request", MISSING)),
        (
            Some(valid.as_str()),
            "grant_type=",
            (400, "invalid_request", MISSING),
        ),
        (
            Some(valid.as_str()),
            "grant_type=password",
            (
                400,
                "unsupported_grant_type",
                "grant_type must be client_credentials",
            ),
        ),
        (
            Some(valid.as_str()),
            "grant_type=client_credentials&scope=tasks&scope=deliveries",
            (400, "invalid_request", "scope must occur only once"),
        ),
        (
            Some(valid.as_str()),
            "grant_type=client_credentials&%22%C3%A9=1&%22%C3%A9=2",
            (400, "invalid_request", "'? must occur only once"),
        ),
    ] {
        let reply = platform
            .client
            .post_form("/oauth2/token", body, authorization)
            .await;

        assert_token_error(&reply, status, error, description);
    }
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn credentials_in_the_url_are_ignored() {
    let platform = Platform::start().await;

    let path = format!("/oauth2/token?{GRANT}&client_id=key&client_secret=secret");
    let reply = platform.client.post_form(&path, GRANT, None).await;

    assert_eq!(reply.json()["error"], "invalid_client");
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn another_content_type_is_an_invalid_request() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::POST, "/oauth2/token")
        .header("content-type", "application/json");
    let reply = platform.client.send(request, "{}").await;

    assert_token_error(
        &reply,
        400,
        "invalid_request",
        "the body must be application/x-www-form-urlencoded",
    );
}

#[tokio::test]
async fn a_compressed_body_is_an_invalid_request() {
    let platform = Platform::start().await;
    let request = |encoding: &str| {
        platform
            .client
            .request(Method::POST, "/oauth2/token")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("content-encoding", encoding)
            .header("authorization", basic("key:secret"))
    };

    for encoding in ["gzip", "br", "identity, gzip"] {
        // The beginning of a gzip file.
        let body = b"\x1f\x8b\x08".as_slice();
        let reply = platform.client.send(request(encoding), body).await;

        assert_token_error(
            &reply,
            400,
            "invalid_request",
            "the body must not be compressed",
        );
    }
    assert!(!platform.core.has_unread_call());
    platform.core.will_respond(token());
    let reply = platform.client.send(request("Identity"), GRANT).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn errors_of_core_have_the_codes_of_rfc_6749() {
    for (status, (code, error)) in [
        (
            core_status(
                Code::Unauthenticated,
                "INVALID_CLIENT",
                "no \"such\" client",
            ),
            (401, "invalid_client"),
        ),
        (
            core_status(Code::InvalidArgument, "INVALID_SCOPE", "no \"such\" client"),
            (400, "invalid_scope"),
        ),
        (
            core_status(
                Code::InvalidArgument,
                "VALIDATION_FAILED",
                "no \"such\" client",
            ),
            (400, "invalid_request"),
        ),
    ] {
        let platform = Platform::start().await;
        platform.core.will_fail(status);

        let reply = platform
            .client
            .post_form("/oauth2/token", GRANT, Some(&basic("key:secret")))
            .await;

        assert_token_error(&reply, code, error, "no 'such' client");
    }
}

#[tokio::test]
async fn an_error_unknown_to_rfc_6749_has_the_form_of_the_api() {
    let platform = Platform::start().await;
    platform.core.will_fail(Status::unavailable("no"));

    let reply = platform
        .client
        .post_form("/oauth2/token", GRANT, Some(&basic("key:secret")))
        .await;

    assert_eq!(reply.status, 503);
    assert_eq!(reply.error()["code"], "unavailable");
}

#[tokio::test]
async fn public_keys_are_public() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListPublicKeysResponse {
        jwks: r#"{"keys":[]}"#.to_owned(),
    });

    let reply = platform.client.get("/oauth2/jwks").await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-type"),
        Some("application/jwk-set+json")
    );
    assert_eq!(reply.text(), r#"{"keys":[]}"#);
}

#[tokio::test]
async fn a_key_or_secret_of_more_than_a_kibibyte_is_rejected_without_a_call_to_core() {
    const TOO_LONG: &str = "the client's key and secret must be at most 1024 bytes long";
    let platform = Platform::start().await;
    let [longest, longer] = [1024, 1025].map(|length| "a".repeat(length));
    for credentials in [format!("{longer}:secret"), format!("key:{longer}")] {
        let authorization = basic(&credentials);

        let reply = platform
            .client
            .post_form("/oauth2/token", GRANT, Some(&authorization));

        assert_token_error(&reply.await, 401, "invalid_client", TOO_LONG);
    }
    platform.core.will_respond(token());
    let authorization = basic(&format!("{longest}:{longest}"));

    let reply = platform
        .client
        .post_form("/oauth2/token", GRANT, Some(&authorization));

    assert_eq!(reply.await.status, 200);
}

#[tokio::test]
async fn many_that_ask_for_the_keys_cost_core_few_calls() {
    const COUNT: usize = 20;
    let platform = Platform::start().await;
    for _ in 0..COUNT {
        let jwks = r#"{"keys":[]}"#.to_owned();
        platform.core.will_respond(ListPublicKeysResponse { jwks });
    }

    let requests = (0..COUNT).map(|_| platform.client.get("/oauth2/jwks"));
    for reply in futures_util::future::join_all(requests).await {
        assert_eq!(reply.text(), r#"{"keys":[]}"#);
    }

    let mut calls = 0;
    while platform.core.has_unread_call() {
        platform.core.received::<ListPublicKeysRequest>();
        calls += 1;
    }
    // One, and another each half second.
    assert!(calls < COUNT / 2, "{calls}");
}
