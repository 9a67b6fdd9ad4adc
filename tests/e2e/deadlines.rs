//! Deadlines of calls: core stops work whose deadline has passed.

use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use http_body_util::Full;
use hyper::{Request, header};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use prost::Message as _;
use proto::{CalculateRetailPriceRequest, DeliveryDraft, TaskDraft, task_draft::Address};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

use crate::harness::{Database, Platform};

/// The configured timeout of the router, longer than any test runs.
const ROUTER_TIMEOUT: Duration = Duration::from_hours(1);

/// Generous upper bound for the call, whose deadline is one second.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The caller sends the deadline but stays connected and would read a response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_past_its_deadline_ends_together_with_its_upstream_request() {
    let router = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", router.local_addr().unwrap());
    let platform = Platform::start_with(Database::sqlite(), |settings| {
        settings.router.osrm_url = Some(url.parse().unwrap());
        settings.router.osrm_timeout = ROUTER_TIMEOUT;
    })
    .await;
    let client = platform.client().await;

    let call = tokio::spawn(call(platform.core_url.clone(), client.token().to_owned()));
    let (mut connection, _) = router.accept().await.unwrap();
    let mut request = Vec::new();
    let closed = tokio::time::timeout(TEST_TIMEOUT, connection.read_to_end(&mut request)).await;

    closed
        .expect("core closes its connection to the router")
        .unwrap();
    assert!(request.starts_with(b"GET /route/v1/bike/"));
    assert_eq!(call.await.unwrap(), tonic::Code::Cancelled);
    platform.stop().await;
}

/// Calculates a price with a deadline of one second, only in the header: tonic's client would also enforce it
/// locally.
async fn call(core_url: String, token: String) -> tonic::Code {
    let task = |address: &str| TaskDraft {
        address: Some(Address::AddressText(address.to_owned())),
        before: Some("2020-04-03 13:00".to_owned()),
        ..TaskDraft::default()
    };
    let message = CalculateRetailPriceRequest {
        delivery: Some(DeliveryDraft {
            pickup: Some(task("44 Rue de Rivoli, 75004 Paris")),
            dropoff: Some(task("48 Rue de Rivoli, 75004 Paris")),
            ..DeliveryDraft::default()
        }),
        violations: Vec::new(),
        store: String::new(),
    };
    let mut frame = BytesMut::new();
    // gRPC message prefix: uncompressed, length.
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut frame).unwrap();

    let client = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_only(true)
        .build_http();
    let path = "/delivery.v1.RetailPrices/CalculateRetailPrice";
    let request = Request::post(format!("{core_url}{path}"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header("grpc-timeout", "1S")
        .body(Full::new(frame.freeze()))
        .unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.headers()["grpc-status"].to_str().unwrap();
    tonic::Code::from_bytes(status.as_bytes())
}
