//! What the tests of notifications share.

use std::{sync::Arc, time::Duration};

use domain::{id::WebhookId, scheduling::ReceiverHealth, webhook_secrets::Secrets};
use jiff::{SignedDuration, Timestamp};
use process::clock::Clock;
use storage::{
    fixture,
    notifications::{ClaimedNotification, Lease},
};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Queue,
    streams::{Streams, UnsentLeases},
    test_sends::TestSends,
};
use crate::{
    metrics::Metrics,
    secrets::{secret_box::SecretBox, webhook_secret_box},
};

/// A queue of a new database, whose clock is at the epoch, and the leases that its streams do not use.
pub(super) async fn queue() -> (TempDir, Arc<Queue>, UnsentLeases) {
    let (directory, storage) = fixture::sqlite().await;
    let secret_box = SecretBox::open_or_create(&directory.path().join("master.key"));
    let (streams, unsent_leases) = Streams::new();
    let streams = Arc::new(streams);
    let queue = Queue {
        storage,
        clock: Clock::manual(Timestamp::UNIX_EPOCH),
        secret_box: Arc::new(secret_box.unwrap()),
        test_sends: TestSends::new(Arc::clone(&streams)),
        streams,
        shutdown: CancellationToken::new(),
        disable_after: SignedDuration::from_hours(1),
        metrics: Metrics::new(),
    };
    (directory, Arc::new(queue), unsent_leases)
}

impl Queue {
    pub(super) async fn is_any_due(&self) -> bool {
        let is_any_due =
            storage::notifications::is_any_due(self.storage.reader(), self.clock.now()).await;
        is_any_due.unwrap()
    }

    /// Inserts a webhook with a notification under a lease of this duration.
    pub(super) async fn lease_one(&self, duration: Duration) -> Lease {
        let webhook = fixture::webhook(self.clock.now());
        let leases = fixture::leased_notifications(&self.storage, &webhook, 1, duration).await;
        leases[0]
    }

    /// A notification of a webhook whose secret can be decrypted.
    pub(super) fn sendable_notification(&self) -> ClaimedNotification {
        let webhook_id = WebhookId::new();
        let (_, encrypted) = webhook_secret_box::create(&self.secret_box, webhook_id);
        let mut claimed = fixture::claimed(webhook_id, ReceiverHealth::Healthy);
        claimed.target.secrets = Secrets::new(encrypted);
        claimed
    }
}

/// An instant in the past.
pub(super) fn ago(seconds: u64) -> Instant {
    Instant::now()
        .checked_sub(Duration::from_secs(seconds))
        .unwrap()
}
