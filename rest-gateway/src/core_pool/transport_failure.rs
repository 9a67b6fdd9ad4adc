//! Classifies failed calls: whether core may have processed them.

use std::error::Error as _;

use core_client::{causes, is_caused_by};
use tonic::{ConnectError, Status, TimeoutExpired};

/// Why a call got no response from core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportFailure {
    /// Core certainly did not process the call.
    NotProcessed,
    /// Core may have processed the call.
    ResponseLost,
}

impl TransportFailure {
    /// None if core responded or the deadline passed.
    pub(super) fn of(status: &Status) -> Option<Self> {
        if status.source().is_none() || is_caused_by::<TimeoutExpired>(status) {
            None
        } else if is_caused_by::<ConnectError>(status) || was_not_processed(status) {
            Some(Self::NotProcessed)
        } else {
            Some(Self::ResponseLost)
        }
    }
}

/// Whether core shut down before it processed the call: the call was not written, its stream is
/// above the last one that the connection processes (RFC 9113 §6.8), or the stream was refused
/// (§8.7).
fn was_not_processed(status: &Status) -> bool {
    causes(status).any(|cause| {
        let not_written = cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_canceled);
        let refused = cause.downcast_ref::<h2::Error>().is_some_and(|error| {
            let reason = error.reason();
            (error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR))
                || (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
        });
        not_written || refused
    })
}

#[cfg(test)]
mod tests {
    use h2::Reason;
    use http::Request;
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    /// The failure of a call whose connection core closes without having processed any.
    async fn failure_after_go_away(reason: Reason) -> Option<TransportFailure> {
        let (client, mut core) = duplex(4096);
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        core.write_all(&settings).await.unwrap();
        let (calls, connection) = h2::client::handshake(client).await.unwrap();
        let _connection = tokio::spawn(connection);
        let mut calls = calls.ready().await.unwrap();
        let request = Request::get("http://core/").body(()).unwrap();
        let (response, _) = calls.send_request(request, true).unwrap();

        let mut go_away = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
        let last_stream = 0_u32;
        go_away.extend(last_stream.to_be_bytes());
        go_away.extend(u32::from(reason).to_be_bytes());
        core.write_all(&go_away).await.unwrap();

        let error = response.await.unwrap_err();
        TransportFailure::of(&Status::from_error(Box::new(error)))
    }

    #[tokio::test]
    async fn core_has_not_processed_a_call_after_the_last_one_of_a_graceful_shutdown() {
        let [graceful, failed] = [Reason::NO_ERROR, Reason::INTERNAL_ERROR];

        let graceful = failure_after_go_away(graceful).await;
        let failed = failure_after_go_away(failed).await;

        assert_eq!(graceful, Some(TransportFailure::NotProcessed));
        assert_eq!(failed, Some(TransportFailure::ResponseLost));
    }
}
