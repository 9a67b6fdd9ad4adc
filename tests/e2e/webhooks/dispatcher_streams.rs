//! `Notifications.Receive`: which dispatchers may have one.

use std::time::Duration;

use futures_util::stream;
use jiff::SignedDuration;
use proto::{ReceiveRequest, ReceiveResponse, notifications_client::NotificationsClient};
use tonic::{Code, Streaming};

use crate::harness::{
    Platform,
    grpc::{self, with_token},
};
use delivery::Credentials;

/// The limit within which the stream of a dispatcher that is no longer permitted ends.
const END_TIMEOUT: Duration = Duration::from_secs(10);

on_both_databases! {
    async fn the_stream_of_a_disabled_dispatcher_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let dispatcher = operator.create_client("", &["notifications"]).await;
        let stream = open(platform, &dispatcher).await;

        operator.disable_client(&dispatcher).await;

        assert_ends(stream).await;
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
        // Checked twice in this time.
        let open = tokio::time::timeout(Duration::from_secs(5), of_third.message()).await;
        assert!(open.is_err(), "{open:?}");
    }
}

async fn open(platform: &Platform, dispatcher: &Credentials) -> Streaming<ReceiveResponse> {
    let (channel, token) = grpc::connect(&platform.core_url, dispatcher, &["notifications"]).await;
    let requests = stream::pending::<ReceiveRequest>();
    let responses = NotificationsClient::new(channel)
        .receive(with_token(&token, requests))
        .await;
    responses.unwrap().into_inner()
}

async fn assert_ends(mut stream: Streaming<ReceiveResponse>) {
    let ended = tokio::time::timeout(END_TIMEOUT, stream.message()).await;
    let status = ended.expect("the stream should end").unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unauthenticated, "the access token is not valid")
    );
}
