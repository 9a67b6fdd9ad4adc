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
