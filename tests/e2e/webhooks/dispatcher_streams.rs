//! `Notifications.Stream`: which dispatchers may have one.

use std::time::Duration;

use futures_util::stream;
use proto::{StreamRequest, notifications_client::NotificationsClient};
use tonic::Code;

use crate::harness::{
    Platform,
    grpc::{self, with_token},
};

/// The limit within which the stream of a disabled dispatcher ends.
const END_TIMEOUT: Duration = Duration::from_secs(10);

on_both_databases! {
    async fn the_stream_of_a_disabled_dispatcher_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let dispatcher = operator.create_client("", &["notifications"]).await;
        let (channel, token) =
            grpc::connect(&platform.core_url, &dispatcher, &["notifications"]).await;
        let requests = stream::pending::<StreamRequest>();
        let responses = NotificationsClient::new(channel)
            .stream(with_token(&token, requests))
            .await;
        let mut responses = responses.unwrap().into_inner();

        operator.disable_client(&dispatcher).await;

        let ended = tokio::time::timeout(END_TIMEOUT, responses.message()).await;
        let status = ended.expect("the stream should end").unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unauthenticated, "the access token is not valid")
        );
    }
}
