//! Rate limits of API clients, and of the token endpoint by address and by client. Windows are so
//! long that no quota is replenished during a test.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Method;
use proto::{AccessToken, task};
use rest_gateway::RateLimitConfig;
use serde_json::json;
use tonic::Code;

use crate::harness::{
    Client, Platform, Reply,
    samples::{ID, core_status, task},
};

const GRANT: &str = "grant_type=client_credentials";

async fn start(limits: impl FnOnce(&mut RateLimitConfig)) -> Platform {
    Platform::start_with(|config| {
        config.rate_limits = RateLimitConfig::off();
        limits(&mut config.rate_limits);
    })
    .await
}

/// One of many tokens of a client.
fn token(client: &str, number: u32) -> String {
    let claims = json!({"sub": client, "jti": number.to_string()}).to_string();
    format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
}

/// Requests a task with these headers.
async fn get_task(client: &Client, headers: &[(&str, &str)]) -> Reply {
    let mut request = client.request(Method::GET, &format!("/api/tasks/{ID}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request, "").await
}

async fn get_task_with_token(platform: &Platform, token: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    get_task(&platform.client, &[("authorization", &authorization)]).await
}

/// Requests a task with a token that core accepts.
async fn get_task_accepted(platform: &Platform, token: &str) -> Reply {
    platform.core.will_respond(task(task::Kind::Pickup));
    get_task_with_token(platform, token).await
}

/// The remaining quota, from the response header.
fn remaining(reply: &Reply) -> u32 {
    let (_, remaining) = reply.header("ratelimit").unwrap().split_once("r=").unwrap();
    let (remaining, _) = remaining.split_once(';').unwrap();
    remaining.parse().unwrap()
}

#[tokio::test]
async fn a_client_sees_its_remaining_quota_and_then_429_with_a_retry_after() {
    let platform = start(|limits| limits.client = "3/1h".parse().unwrap()).await;
    let token = token("shop", 1);

    // The client of the token is not known before core accepts it.
    get_task_accepted(&platform, &token).await;
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(get_task_accepted(&platform, &token).await);
    }
    let rejected = get_task_with_token(&platform, &token).await;

    let mut remainders = Vec::new();
    for reply in &replies {
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.header("ratelimit-policy"),
            Some("\"client\";q=3;w=3600")
        );
        remainders.push(remaining(reply));
    }
    assert_eq!(remainders, [2, 1, 0]);
    assert_eq!(
        replies[0].header("ratelimit"),
        Some("\"client\";r=2;t=1200")
    );
    assert_eq!(rejected.status, 429);
    assert_eq!(
        rejected.header("ratelimit-policy"),
        Some("\"client\";q=3;w=3600")
    );
    let retry_after = rejected.header("retry-after").unwrap();
    assert!(
        (1000..=1200).contains(&retry_after.parse().unwrap()),
        "{retry_after}"
    );
    assert_eq!(
        rejected.header("ratelimit"),
        Some(format!("\"client\";r=0;t={retry_after}").as_str())
    );
    assert_eq!(
        rejected.error(),
        json!({
            "@context": "/api/contexts/Error",
            "@type": "hydra:Error",
            "hydra:title": "An error occurred",
            "hydra:description": "more than 3 requests in 3600 s",
            "type": "https://delivery.example/errors/too_many_requests",
            "title": "Too many requests",
            "status": 429,
            "detail": "more than 3 requests in 3600 s",
            "code": "too_many_requests",
            "retryable": true,
        })
    );
}

#[tokio::test]
async fn all_tokens_of_a_client_share_its_quota() {
    let platform = start(|limits| limits.client = "100/1h".parse().unwrap()).await;
    for (client, number) in [("a", 1), ("a", 2), ("b", 1)] {
        get_task_accepted(&platform, &token(client, number)).await;
    }

    let mut remainders = Vec::new();
    for (client, number) in [("a", 1), ("a", 2), ("a", 1), ("b", 1)] {
        remainders.push(remaining(
            &get_task_accepted(&platform, &token(client, number)).await,
        ));
    }

    assert_eq!(remainders, [99, 98, 97, 99]);
}

/// Otherwise any sender could use up another client's quota with a forged token.
#[tokio::test]
async fn a_token_that_core_has_not_accepted_counts_against_the_address() {
    let platform = start(|limits| limits.client = "5/1h".parse().unwrap()).await;
    let real = token("shop", 1);
    get_task_accepted(&platform, &real).await;

    let mut remainders = Vec::new();
    for number in 2..5 {
        let invalid = core_status(Code::Unauthenticated, "TOKEN_INVALID", "is not valid");
        platform.core.will_fail(invalid);
        let reply = get_task_with_token(&platform, &token("shop", number)).await;
        assert_eq!(reply.status, 401);
        remainders.push(remaining(&reply));
    }
    let public = platform.client.get("/api").await;
    let unknown = get_task(&platform.client, &[]).await;
    let shop = get_task_accepted(&platform, &real).await;

    assert_eq!(remainders, [3, 2, 1]);
    assert_eq!((public.status.as_u16(), remaining(&public)), (200, 0));
    assert_eq!(unknown.status, 429);
    assert_eq!((shop.status.as_u16(), remaining(&shop)), (200, 4));
}

#[tokio::test]
async fn an_address_comes_from_a_trusted_proxy_or_else_from_the_connection() {
    let limit = |limits: &mut RateLimitConfig| limits.client = "100/1h".parse().unwrap();
    let alone = start(limit).await;
    let proxied = start(|limits| {
        limit(limits);
        limits.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let from = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-for", "192.0.2.2, 192.0.2.1"),
        ("x-forwarded-for", "192.0.2.3"),
        ("x-forwarded-for", "[2001:db8::1]:80"),
        ("x-forwarded-for", "2001:db8::2"),
        ("x-forwarded-for", "2001:db8:0:1::2"),
        ("forwarded", "for=192.0.2.1"),
    ];

    let (mut ignored, mut trusted) = (Vec::new(), Vec::new());
    for header in from {
        ignored.push(remaining(&get_task(&alone.client, &[header]).await));
        trusted.push(remaining(&get_task(&proxied.client, &[header]).await));
    }

    assert_eq!(ignored, [99, 98, 97, 96, 95, 94, 93]);
    // `Forwarded` is not read: the last request is of the proxy.
    assert_eq!(trusted, [99, 98, 99, 99, 98, 99, 99]);
}

#[tokio::test]
async fn tokens_are_limited_by_address_and_by_client() {
    let platform = start(|limits| {
        limits.token_address = "6/1h".parse().unwrap();
        limits.token_client = "2/1h".parse().unwrap();
    })
    .await;
    let request_token = async |credentials: &str| {
        platform.core.will_respond(AccessToken::default());
        let body = format!("{GRANT}&{credentials}");
        platform
            .client
            .post_form("/oauth2/token", &body, None)
            .await
    };

    let first = request_token("client_id=a&client_secret=s").await;
    let mut statuses = vec![first.status.as_u16()];
    // Guessed secrets do not use up the client's quota.
    for credentials in [
        "a&client_secret=t",
        "a&client_secret=s",
        "a&client_secret=s",
        "b&client_secret=s",
    ] {
        statuses.push(
            request_token(&format!("client_id={credentials}"))
                .await
                .status
                .as_u16(),
        );
    }
    let malformed = platform.client.post_form("/oauth2/token", "", None).await;
    let rejected = request_token("client_id=c&client_secret=s").await;

    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"token-address\";q=6;w=3600, \"token-client\";q=2;w=3600")
    );
    assert_eq!(
        first.header("ratelimit"),
        Some("\"token-address\";r=5;t=600, \"token-client\";r=1;t=1800")
    );
    assert_eq!(statuses, [200, 200, 200, 429, 200]);
    assert_eq!(malformed.status, 400);
    assert_eq!(
        malformed.header("ratelimit-policy"),
        Some("\"token-address\";q=6;w=3600")
    );
    assert_eq!(rejected.status, 429);
    assert!(rejected.header("retry-after").is_some());
    assert_eq!(rejected.error()["code"], "too_many_requests");
}

#[tokio::test]
async fn responses_without_limit_have_no_rate_limit_headers() {
    let limited = start(|limits| limits.client = "1/1h".parse().unwrap()).await;
    let unlimited = start(|_| {}).await;

    for path in ["/healthz", "/errors/not_found", "/apiary", "/nowhere"] {
        for _ in 0..3 {
            let reply = limited.client.get(path).await;
            assert_ne!(reply.status, 429, "{path}");
            assert_eq!(reply.header("ratelimit"), None, "{path}");
        }
    }
    for _ in 0..3 {
        let reply = unlimited.client.get("/api").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("ratelimit"), None);
        assert_eq!(reply.header("ratelimit-policy"), None);
    }
}

#[tokio::test]
async fn every_error_has_rate_limit_headers() {
    let platform = start(|limits| limits.client = "9/1h".parse().unwrap()).await;

    for (method, path, status) in [
        (Method::GET, "/api/nowhere", 404),
        (Method::PATCH, "/api", 405),
        (Method::POST, "/api/webhooks", 415),
    ] {
        let reply = platform.client.method(method, path).await;

        assert_eq!(reply.status, status, "{path}");
        assert_eq!(
            reply.header("ratelimit-policy"),
            Some("\"client\";q=9;w=3600")
        );
    }
}
