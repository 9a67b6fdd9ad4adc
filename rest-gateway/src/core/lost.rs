//! Whether a call was lost on its way, and where.

use std::error::Error as _;

use core_client::{causes, is_caused_by};
use tonic::{ConnectError, Status, TimeoutExpired};

/// Whether a call was lost on the way, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It was not: core answered, or time ran out.
    No,
    BeforeSent,
    Underway,
}

impl Lost {
    pub(super) fn of(status: &Status) -> Self {
        if status.source().is_none() || is_caused_by::<TimeoutExpired>(status) {
            Self::No
        } else if is_caused_by::<ConnectError>(status) || never_processed(status) {
            Self::BeforeSent
        } else {
            Self::Underway
        }
    }
}

/// Whether core was ending and said that it did not, and will not, look at the call: it was
/// never written, or its stream is beyond the last one that the connection takes (RFC 9113
/// §6.8), or was refused (§8.7).
fn never_processed(status: &Status) -> bool {
    causes(status).any(|cause| {
        let unsent = cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_canceled);
        let refused = cause.downcast_ref::<h2::Error>().is_some_and(|error| {
            let reason = error.reason();
            (error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR))
                || (error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
        });
        unsent || refused
    })
}
