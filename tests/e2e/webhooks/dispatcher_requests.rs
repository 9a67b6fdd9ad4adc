//! `Notifications.Receive`: how a stream ends by what its dispatcher sends.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::harness::{
    Platform, grpc,
    raw_connection::{RawConnection, Sent, complete, unfinished},
};

/// A request that grants capacity for one notification, in a frame of gRPC.
const GRANT: &[u8] = &[0, 0, 0, 0, 2, 8, 1];

on_both_databases! {
    async fn the_stream_of_a_dispatcher_that_half_closes_ends_with_ok(platform: &Platform) {
        let dispatcher = Dispatcher::connect(platform).await;

        for requests in [complete(GRANT), complete([GRANT, GRANT].concat()), complete("")] {
            assert_eq!(dispatcher.receive(requests).await.code(), Code::Ok);
        }
    }

    /// Its connection serves other calls.
    async fn what_is_no_request_ends_the_stream_of_a_dispatcher_with_an_error(platform: &Platform) {
        let dispatcher = Dispatcher::connect(platform).await;
        let after_a_grant = |bytes: &[u8]| [GRANT, bytes].concat();

        for requests in [
            // A message that lacks the value of its field.
            unfinished(after_a_grant(&[0, 0, 0, 0, 1, 8])),
            // A message that is said to be compressed, and one of which neither is said.
            unfinished(after_a_grant(&[1, 0, 0, 0, 2, 8, 1])),
            unfinished(after_a_grant(&[2, 0, 0, 0, 2, 8, 1])),
            // A frame that lacks its end.
            complete(after_a_grant(&GRANT[..6])),
        ] {
            assert_eq!(dispatcher.receive(requests).await.code(), Code::Internal);
        }
        assert_eq!(dispatcher.receive(complete(GRANT)).await.code(), Code::Ok);
    }

    /// Before its bytes arrive: the frame says how many there will be.
    async fn a_request_over_the_limit_ends_the_stream_of_a_dispatcher_with_the_reason(
        platform: &Platform,
    ) {
        let dispatcher = Dispatcher::connect(platform).await;
        let length = ((4_u32 << 20) + 1).to_be_bytes();

        let ended = dispatcher.receive(unfinished([GRANT, &[0], &length].concat())).await;

        let reason = ended.get_details_error_info().map(|info| info.reason);
        assert_eq!(
            (ended.code(), ended.message(), reason.as_deref()),
            (
                Code::ResourceExhausted,
                "the message of a call must be at most 4194304 bytes",
                Some("MESSAGE_TOO_LARGE"),
            )
        );
    }
}

/// A dispatcher that sends any bytes.
struct Dispatcher {
    connection: RawConnection,
    token: String,
}

impl Dispatcher {
    async fn connect(platform: &Platform) -> Self {
        let operator = platform.operator().await;
        let scopes = ["notifications"];
        let client = operator.create_client("", &scopes).await;
        let (_, token) = grpc::connect(&platform.core_url, &client, &scopes).await;
        Self {
            connection: RawConnection::open(&platform.core_url).await,
            token,
        }
    }

    /// Opens a stream with these requests, and returns the status with which it ends.
    async fn receive(&self, requests: Sent) -> Status {
        let path = "/delivery.v1.Notifications/Receive";
        let ended = self.connection.call(path, &self.token, &[], requests).await;
        assert_eq!(ended.http_status, 200);
        ended.status.expect("a stream should end with a status")
    }
}
