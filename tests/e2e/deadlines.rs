//! "Deadlines travel with the call": core works for nobody who waits no longer.

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

/// How long the router may take, as the operator has it: no test lives to see that.
const ROUTER: Duration = Duration::from_hours(1);

/// Far beyond the second that the caller gives.
const PATIENCE: Duration = Duration::from_mins(1);

/// The deadline is said, and nothing else: the caller stays connected and would read an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_past_its_deadline_ends_and_so_does_what_core_asks_for_it() {
    let router = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", router.local_addr().unwrap());
    let platform = Platform::start_with(Database::sqlite(), |settings| {
        settings.router.osrm_url = Some(url.parse().unwrap());
        settings.router.osrm_timeout = ROUTER;
    })
    .await;
    let client = platform.client().await;

    let call = tokio::spawn(call(
        platform.core_url.clone(),
        client.token().to_owned(),
        "1S",
    ));
    let (mut question, _) = router.accept().await.unwrap();
    let mut asked = Vec::new();
    let dropped = tokio::time::timeout(PATIENCE, question.read_to_end(&mut asked)).await;

    dropped.expect("the router is asked no longer").unwrap();
    assert!(asked.starts_with(b"GET /route/v1/bike/"));
    assert_eq!(call.await.unwrap(), tonic::Code::Cancelled);
    platform.stop().await;
}

/// Asks for a price, with the deadline in the header and nowhere else. tonic's own client would
/// end the call by itself.
async fn call(core_url: String, token: String, deadline: &'static str) -> tonic::Code {
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
    };
    let mut frame = BytesMut::new();
    // Not compressed, so long.
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
        .header("grpc-timeout", deadline)
        .body(Full::new(frame.freeze()))
        .unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.headers()["grpc-status"].to_str().unwrap();
    tonic::Code::from_bytes(status.as_bytes())
}
