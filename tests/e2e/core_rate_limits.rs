//! Rate limits of callers of gRPC: calls per client, token requests per credentials.

use delivery::{Credentials, RateLimitConfig};
use proto::{
    AssertDeliveryRequest, DeliveryDraft, GetCurrentApiClientRequest, IssueTokenRequest,
    api_clients_client::ApiClientsClient, deliveries_client::DeliveriesClient,
    tokens_client::TokensClient,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::harness::{
    Database, Platform,
    attacks::EMPTY_MESSAGE,
    grpc::{self, with_token},
    raw_connection::{RawConnection, complete},
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

#[tokio::test]
async fn a_call_that_is_too_large_has_a_reason_and_its_connection_stays_open() {
    let platform = Platform::start(Database::sqlite()).await;
    let (channel, token) =
        grpc::connect(&platform.core_url, &platform.demo_client, &["deliveries"]).await;
    let mut clients = ApiClientsClient::new(channel.clone());
    let with_header = |length: usize| {
        let mut request = with_token(&token, GetCurrentApiClientRequest {});
        let value = "a".repeat(length).parse().unwrap();
        request.metadata_mut().insert("x-note", value);
        request
    };
    let draft = DeliveryDraft {
        external_reference: Some("a".repeat(5 << 20)),
        ..DeliveryDraft::default()
    };
    let large = AssertDeliveryRequest {
        delivery: Some(draft),
        ..AssertDeliveryRequest::default()
    };

    let mut deliveries = DeliveriesClient::new(channel);
    let of_message = deliveries.assert_delivery(with_token(&token, large)).await;
    let of_headers = clients.get_current_api_client(with_header(20_000)).await;
    let of_small = clients.get_current_api_client(with_header(10_000)).await;

    let refused = [of_message.err().unwrap(), of_headers.err().unwrap()];
    let reasons = refused.map(|status| {
        let reason = status.get_details_error_info().unwrap().reason;
        (status.code(), reason)
    });
    assert_eq!(
        reasons,
        [
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE".to_owned()),
            (Code::ResourceExhausted, "HEADERS_TOO_LARGE".to_owned()),
        ]
    );
    assert!(of_small.is_ok());
}

/// All calls use one connection. From 64 KiB on it is HTTP/2 that answers, before core gets the call.
#[tokio::test]
async fn headers_over_a_limit_end_the_call_and_not_its_connection() {
    let platform = Platform::start(Database::sqlite()).await;
    let (_, token) =
        grpc::connect(&platform.core_url, &platform.demo_client, &["deliveries"]).await;
    let connection = RawConnection::open(&platform.core_url).await;

    let mut ended = Vec::new();
    for length in [10_000, 20_000, 100_000, 10_000] {
        let path = "/delivery.v1.ApiClients/GetCurrentApiClient";
        let headers = [("x-note", &*"a".repeat(length))];
        let call = connection
            .call(path, &token, &headers, complete(EMPTY_MESSAGE))
            .await;
        let status = call.status.map(|status| {
            let reason = status.get_details_error_info().map(|info| info.reason);
            (status.code(), status.message().to_owned(), reason)
        });
        ended.push((call.http_status, status));
    }

    let accepted = (200, Some((Code::Ok, String::new(), None)));
    let message = "the headers of a call must be at most 16384 bytes".to_owned();
    let reason = Some("HEADERS_TOO_LARGE".to_owned());
    let refused = (200, Some((Code::ResourceExhausted, message, reason)));
    assert_eq!(ended, [accepted.clone(), refused, (431, None), accepted]);
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
