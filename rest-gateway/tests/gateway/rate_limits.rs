//! Rate limits: of API clients, and of the token endpoint by address and by client. Windows are so
//! long that nothing comes back while a test runs.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Method;
use proto::{AccessToken, task};
use rest_gateway::RateLimitConfig;
use serde_json::json;
use tonic::Code;

use crate::harness::{
    Client, Platform, Reply,
    samples::{ID, refusal, task},
};

const GRANT: &str = "grant_type=client_credentials";

async fn start(limits: impl FnOnce(&mut RateLimitConfig)) -> Platform {
    Platform::start_with(|config| {
        config.rate_limits = RateLimitConfig::off();
        limits(&mut config.rate_limits);
    })
    .await
}

/// A token of a client's, one of many.
fn token(client: &str, number: u32) -> String {
    let claims = json!({"sub": client, "jti": number.to_string()}).to_string();
    format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
}

/// Asks for a task with headers of the test's choice.
async fn ask(client: &Client, headers: &[(&str, &str)]) -> Reply {
    let mut request = client.request(Method::GET, &format!("/api/tasks/{ID}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request, "").await
}

async fn ask_as(platform: &Platform, token: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    ask(&platform.client, &[("authorization", &authorization)]).await
}

/// Asks with a token that core accepts.
async fn ask_well(platform: &Platform, token: &str) -> Reply {
    platform.core.will_answer(task(task::Kind::Pickup));
    ask_as(platform, token).await
}

/// What remains, as the answer tells it.
fn remaining(reply: &Reply) -> u32 {
    let (_, remaining) = reply.header("ratelimit").unwrap().split_once("r=").unwrap();
    let (remaining, _) = remaining.split_once(';').unwrap();
    remaining.parse().unwrap()
}

#[tokio::test]
async fn a_client_is_told_how_it_stands_and_then_to_come_back_later() {
    let platform = start(|limits| limits.client = "3/1h".parse().unwrap()).await;
    let token = token("shop", 1);

    // Nobody knows yet whose the token is.
    ask_well(&platform, &token).await;
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(ask_well(&platform, &token).await);
    }
    let refused = ask_as(&platform, &token).await;

    let mut left = Vec::new();
    for reply in &replies {
        assert_eq!(reply.status, 200);
        assert_eq!(
            reply.header("ratelimit-policy"),
            Some("\"client\";q=3;w=3600")
        );
        left.push(remaining(reply));
    }
    assert_eq!(left, [2, 1, 0]);
    assert_eq!(
        replies[0].header("ratelimit"),
        Some("\"client\";r=2;t=1200")
    );
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"client\";q=3;w=3600")
    );
    let retry_after = refused.header("retry-after").unwrap();
    assert!(
        (1000..=1200).contains(&retry_after.parse().unwrap()),
        "{retry_after}"
    );
    assert_eq!(
        refused.header("ratelimit"),
        Some(format!("\"client\";r=0;t={retry_after}").as_str())
    );
    assert_eq!(
        refused.error(),
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
async fn all_tokens_of_a_client_share_its_budget_and_no_others() {
    let platform = start(|limits| limits.client = "100/1h".parse().unwrap()).await;
    for (client, number) in [("a", 1), ("a", 2), ("b", 1)] {
        ask_well(&platform, &token(client, number)).await;
    }

    let mut left = Vec::new();
    for (client, number) in [("a", 1), ("a", 2), ("a", 1), ("b", 1)] {
        left.push(remaining(
            &ask_well(&platform, &token(client, number)).await,
        ));
    }

    assert_eq!(left, [99, 98, 97, 99]);
}

/// Else everyone could use up everyone's budget: a token says whatever its maker likes.
#[tokio::test]
async fn a_token_that_core_has_not_accepted_is_counted_where_it_comes_from() {
    let platform = start(|limits| limits.client = "5/1h".parse().unwrap()).await;
    let real = token("shop", 1);
    ask_well(&platform, &real).await;

    let mut left = Vec::new();
    for number in 2..5 {
        let invalid = refusal(Code::Unauthenticated, "TOKEN_INVALID", "is not valid");
        platform.core.will_refuse(invalid);
        let reply = ask_as(&platform, &token("shop", number)).await;
        assert_eq!(reply.status, 401);
        left.push(remaining(&reply));
    }
    let public = platform.client.get("/api").await;
    let stranger = ask(&platform.client, &[]).await;
    let shop = ask_well(&platform, &real).await;

    assert_eq!(left, [3, 2, 1]);
    assert_eq!((public.status.as_u16(), remaining(&public)), (200, 0));
    assert_eq!(stranger.status, 429);
    assert_eq!((shop.status.as_u16(), remaining(&shop)), (200, 4));
}

#[tokio::test]
async fn an_address_is_a_trusted_proxys_word_or_the_connections_other_end() {
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
        ("forwarded", "for=192.0.2.1"),
        ("forwarded", "for=\"[2001:db8::1]:80\""),
        ("forwarded", "for=\"[2001:db8::2]\""),
        ("forwarded", "for=\"[2001:db8:0:1::2]\""),
    ];

    let (mut ignored, mut believed) = (Vec::new(), Vec::new());
    for header in from {
        ignored.push(remaining(&ask(&alone.client, &[header]).await));
        believed.push(remaining(&ask(&proxied.client, &[header]).await));
    }

    assert_eq!(ignored, [99, 98, 97, 96, 95, 94, 93]);
    assert_eq!(believed, [99, 98, 99, 97, 99, 98, 99]);
}

#[tokio::test]
async fn tokens_are_limited_by_address_and_by_client() {
    let platform = start(|limits| {
        limits.token_address = "6/1h".parse().unwrap();
        limits.token_client = "2/1h".parse().unwrap();
    })
    .await;
    let ask = async |credentials: &str| {
        platform.core.will_answer(AccessToken::default());
        let body = format!("{GRANT}&{credentials}");
        platform
            .client
            .post_form("/oauth2/token", &body, None)
            .await
    };

    let first = ask("client_id=a&client_secret=s").await;
    let mut statuses = vec![first.status.as_u16()];
    // Whoever guesses takes nothing from the client.
    for credentials in [
        "a&client_secret=t",
        "a&client_secret=s",
        "a&client_secret=s",
        "b&client_secret=s",
    ] {
        statuses.push(
            ask(&format!("client_id={credentials}"))
                .await
                .status
                .as_u16(),
        );
    }
    let malformed = platform.client.post_form("/oauth2/token", "", None).await;
    let refused = ask("client_id=c&client_secret=s").await;

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
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.error()["code"], "too_many_requests");
}

#[tokio::test]
async fn what_is_not_limited_says_nothing_of_limits() {
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
async fn every_failure_tells_how_its_sender_stands() {
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
