//! `Notifications.Receive`: when the stream of a dispatcher ends.

use std::time::Duration;

use delivery::Credentials;
use futures_util::{future::join, stream};
use jiff::SignedDuration;
use proto::{ReceiveRequest, ReceiveResponse, notifications_client::NotificationsClient};
use serde_json::{Value, json};
use tonic::{Code, Status, Streaming, transport::Channel};

use crate::harness::{
    Database, Platform, WebhookReceiver, deliver,
    grpc::{self, with_token},
};

/// The limit within which the stream of a dispatcher that is no longer permitted ends.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(10);

on_both_databases! {
    async fn the_stream_of_a_disabled_dispatcher_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let dispatcher = operator.create_client("", &["notifications"]).await;
        let stream = open(platform, &dispatcher).await;

        operator.disable_client(&dispatcher).await;

        assert_ends(stream).await;
    }

    async fn the_stream_of_a_dispatcher_ends_with_its_token(platform: &Platform) {
        let operator = platform.operator().await;
        let dispatcher = operator.create_client("", &["notifications"]).await;
        let mut of_first = open(platform, &dispatcher).await;
        platform.advance(SignedDuration::from_mins(30));
        let mut of_second = open(platform, &dispatcher).await;

        platform.advance(SignedDuration::from_mins(30));

        let ended = tokio::time::timeout(END_TIMEOUT, of_first.message()).await;
        let status = ended.expect("the stream should end").unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unauthenticated, "the access token has expired; get a new one")
        );
        assert_stays_open(&mut of_second).await;
    }

    async fn the_stream_of_a_dispatcher_ends_with_its_secret(platform: &Platform) {
        let operator = platform.operator().await;
        let first = operator.create_client("", &["notifications"]).await;
        let of_first = open(platform, &first).await;
        let second = operator.rotate_secret(&first, Some(60)).await;
        let of_second = open(platform, &second).await;

        platform.advance(SignedDuration::from_mins(1));
        assert_ends(of_first).await;
        let third = operator.rotate_secret(&second, Some(0)).await;
        let mut of_third = open(platform, &third).await;

        assert_ends(of_second).await;
        assert_stays_open(&mut of_third).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_dispatcher_ends_as_unavailable_when_core_shuts_down() {
    let platform = Platform::start(Database::sqlite()).await;
    let operator = platform.operator().await;
    let dispatcher = operator.create_client("", &["notifications"]).await;
    let mut stream = open(&platform, &dispatcher).await;

    let (ended, ()) = join(stream.message(), platform.stop()).await;

    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
}

/// The other core has cached the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_dispatcher_that_was_disabled_at_another_core_ends() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let operator = first.operator().await;
    let dispatcher = operator.create_client("", &["notifications"]).await;
    let stream = open(&second, &dispatcher).await;

    operator.disable_client(&dispatcher).await;

    assert_ends(stream).await;
    Platform::stop_both([first, second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_dispatcher_sends_nothing() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let receiver = WebhookReceiver::start().await;
    let webhook = client
        .create_webhook("delivery.completed", receiver.url())
        .await;
    let clients = platform.run_delivery_json(&["clients", "list"]).await;
    let is_dispatcher = |client: &&Value| client["scopes"] == json!(["notifications"]);
    let dispatcher = clients.as_array().unwrap().iter().find(is_dispatcher);
    let dispatcher = dispatcher.unwrap()["id"].as_str().unwrap();

    let disable = ["clients", "disable", dispatcher];
    platform.run_delivery_json(&disable).await;
    let test = ["webhooks", "test", webhook["id"].as_str().unwrap()];
    let is_connected = async || {
        let tested = platform.run_delivery_output(&test).await;
        let errors = String::from_utf8(tested.stderr).unwrap();
        !errors.starts_with("no webhook dispatcher is connected to this core")
    };
    let disconnected = async { while is_connected().await {} };
    // The caller of a test send that is not reported waits for 25 s.
    let limit = END_TIMEOUT + Duration::from_secs(25);
    let disconnected = tokio::time::timeout(limit, disconnected).await;
    disconnected.expect("the stream should end");
    // Takes the test sends.
    receiver.received().await;
    deliver(&client, &platform.courier().await).await;
    let completed = |page: Value| page["hydra:member"].get(2).cloned();
    client.wait_until("/api/events", completed).await;

    platform.stop().await;
    assert_eq!(receiver.received().await.len(), 0);
}

pub(super) async fn open(
    platform: &Platform,
    dispatcher: &Credentials,
) -> Streaming<ReceiveResponse> {
    open_with(grpc::connect(&platform.core_url, dispatcher, &["notifications"]).await).await
}

async fn open_with((channel, token): (Channel, String)) -> Streaming<ReceiveResponse> {
    let requests = stream::pending::<ReceiveRequest>();
    let responses = NotificationsClient::new(channel)
        .receive(with_token(&token, requests))
        .await;
    responses.unwrap().into_inner()
}

pub(super) async fn assert_stays_open(stream: &mut Streaming<ReceiveResponse>) {
    // Core checks the client twice in this time.
    let open = tokio::time::timeout(Duration::from_secs(5), stream.message()).await;
    assert!(open.is_err(), "{open:?}");
}

async fn assert_ends(mut stream: Streaming<ReceiveResponse>) {
    let ended = tokio::time::timeout(END_TIMEOUT, stream.message()).await;
    assert_ended_as_invalid(&ended.expect("the stream should end").unwrap_err());
}

#[track_caller]
pub(super) fn assert_ended_as_invalid(status: &Status) {
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unauthenticated, "the access token is not valid")
    );
}
