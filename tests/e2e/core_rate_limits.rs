//! Rate limits of callers of gRPC: calls per client, token requests per credentials.

use delivery::{Credentials, RateLimitConfig};
use proto::{
    GetCurrentApiClientRequest, IssueTokenRequest, api_clients_client::ApiClientsClient,
    tokens_client::TokensClient,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::harness::{
    Database, Platform,
    grpc::{self, with_token},
};

fn assert_too_many(status: &Status) {
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| &*info.reason);
    assert_eq!(
        (status.code(), reason),
        (Code::ResourceExhausted, Some("TOO_MANY_REQUESTS"))
    );
    assert_eq!(status.message(), "more than 3 requests in 86400 s");
    // A third of a day, less the time since the first request.
    let delay = details.retry_info().unwrap().retry_delay.unwrap().as_secs();
    assert!((28_700..=28_800).contains(&delay), "{delay}");
}

async fn start(database: Database) -> Platform {
    Platform::start_with(database, |settings| {
        settings.rate_limits = Some(RateLimitConfig {
            client: "3/1d".parse().unwrap(),
            token_client: "3/1d".parse().unwrap(),
            ..RateLimitConfig::off()
        });
    })
    .await
}

async fn call(channel: &Channel, token: &str) -> Result<(), Status> {
    let request = with_token(token, GetCurrentApiClientRequest {});
    let mut clients = ApiClientsClient::new(channel.clone());
    clients.get_current_api_client(request).await.map(drop)
}

async fn issue(channel: &Channel, credentials: &Credentials) -> Result<(), Status> {
    let request = IssueTokenRequest {
        api_key: credentials.api_key.clone(),
        api_secret: credentials.api_secret.clone(),
        scopes: Vec::new(),
    };
    let mut tokens = TokensClient::new(channel.clone());
    tokens.issue_token(request).await.map(drop)
}

async fn assert_limited(platform: &Platform) {
    let connect = |credentials| grpc::connect(&platform.core_url, credentials, &["deliveries"]);
    // One of three token requests.
    let (channel, token) = connect(&platform.demo_client).await;
    for _ in 0..3 {
        call(&channel, &token).await.unwrap();
    }
    assert_too_many(&call(&channel, &token).await.unwrap_err());
    for _ in 0..2 {
        issue(&channel, &platform.demo_client).await.unwrap();
    }
    assert_too_many(&issue(&channel, &platform.demo_client).await.unwrap_err());

    let guessed = Credentials {
        api_secret: "guessed".to_owned(),
        ..platform.demo_client.clone()
    };
    let unknown = issue(&channel, &guessed).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unauthenticated);
    issue(&channel, &platform.operator_client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_client_beyond_its_limits_is_rejected_and_gets_a_retry_delay() {
    for database in Database::each() {
        let platform = start(database).await;
        assert_limited(&platform).await;
        platform.stop().await;
    }
}
