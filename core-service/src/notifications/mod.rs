//! Notifications: the dispatchers' streams, on which the [`Queue`] sends pre-leased and claimed
//! notifications, and their reports, which it records.

mod claims;
#[cfg(test)]
mod fixture;
mod flow_control;
mod leases;
mod outbox;
mod outcomes;
mod reports;
mod stream_server;
mod streams;
mod test_sends;

use std::sync::Arc;

use jiff::SignedDuration;
use process::clock::Clock;
use storage::Storage;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    leases::recover_orphaned_leases,
    outbox::PendingDispatch,
    reports::failure,
    streams::{Response, Streams},
    test_sends::{OUTCOME_TIMEOUT, TestSends},
};
use crate::{metrics::Metrics, secrets::secret_box::SecretBox};

/// Claims notifications, records their outcomes and releases their leases.
pub(crate) struct Queue {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) test_sends: TestSends,
    pub(crate) shutdown: CancellationToken,
    /// After how long a failing webhook is disabled.
    pub(crate) disable_after: SignedDuration,
    pub(crate) metrics: Metrics,
}
