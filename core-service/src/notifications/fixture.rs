//! What the tests of notifications share.

use std::{sync::Arc, time::Duration};

use domain::{
    id::{DeliveryId, NotificationId, WebhookId},
    scheduling::ReceiverHealth,
    webhook_secrets::Secrets,
};
use jiff::{SignedDuration, Timestamp};
use process::clock::Clock;
use storage::{
    fixture,
    notifications::{ClaimedNotification, Lease},
    webhooks::Target,
};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Queue,
    stream_server::StreamServer,
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
    let queue = Queue {
        storage,
        clock: Clock::manual(Timestamp::UNIX_EPOCH),
        secret_box: Arc::new(secret_box.unwrap()),
        streams: Arc::new(streams),
        disable_after: SignedDuration::from_hours(1),
        metrics: Metrics::new(),
    };
    (directory, Arc::new(queue), unsent_leases)
}

pub(super) fn stream_server(queue: Arc<Queue>) -> StreamServer {
    StreamServer {
        test_sends: Arc::new(TestSends::new(Arc::clone(&queue.streams))),
        queue,
        shutdown: CancellationToken::new(),
    }
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
        ClaimedNotification {
            id: NotificationId::new(),
            event: "delivery.completed".to_owned(),
            delivery_id: DeliveryId::new(),
            attempts: 0,
            receiver_health: ReceiverHealth::Healthy,
            traceparent: None,
            target: Target {
                secrets: Secrets::new(encrypted),
                ..Target::example(webhook_id)
            },
        }
    }
}

/// An instant in the past.
pub(super) fn ago(seconds: u64) -> Instant {
    Instant::now()
        .checked_sub(Duration::from_secs(seconds))
        .unwrap()
}
