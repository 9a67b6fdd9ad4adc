//! Notifications: the dispatchers' streams, on each of which the [`StreamServer`] sends pre-leased and
//! claimed notifications, and their reports, which it records in the [`Queue`].

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

pub(crate) use self::{
    leases::recover_orphaned_leases,
    reports::failure,
    stream_server::StreamServer,
    streams::{Response, Streams},
    test_sends::{OUTCOME_TIMEOUT, TestSends},
};
use crate::{metrics::Metrics, secrets::secret_box::SecretBox};

/// Claims notifications, records their outcomes and releases their leases.
pub(crate) struct Queue {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    /// For the secrets of webhooks.
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) streams: Arc<Streams>,
    /// After how long a failing webhook is disabled.
    pub(crate) disable_after: SignedDuration,
    pub(crate) metrics: Metrics,
}
