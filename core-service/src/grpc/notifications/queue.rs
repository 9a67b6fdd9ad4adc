//! The queue of notifications in the database, as a core uses it for its streams. Claims, outcomes and
//! leases have files of their own.

use std::sync::Arc;

use jiff::SignedDuration;
use process::clock::Clock;
use storage::Storage;

use super::streams::Streams;
use crate::{metrics::Metrics, secret_box::SecretBox};

/// Claims notifications, records their outcomes and releases their leases.
pub(in crate::grpc) struct Queue {
    pub(in crate::grpc) storage: Arc<Storage>,
    pub(in crate::grpc) clock: Clock,
    /// For the secrets of webhooks.
    pub(in crate::grpc) secret_box: Arc<SecretBox>,
    pub(in crate::grpc) streams: Arc<Streams>,
    /// After how long a failing webhook is disabled.
    pub(in crate::grpc) disable_after: SignedDuration,
    pub(in crate::grpc) metrics: Metrics,
}
