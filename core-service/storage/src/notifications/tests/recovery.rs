//! Missed events are found, whether or not they are numbered yet.

use super::*;
use crate::{
    events,
    webhook_notifications::{MissedPage, enqueue_missed, missed_events},
};

impl TestStore {
    /// A page of the events missed in a long period, after a number in the log.
    async fn missed_events(&self, id: WebhookId, after: i64, limit: u64) -> MissedPage {
        let webhook = Webhook::try_from(self.row(id).await).unwrap();
        let period = later(-1000)..=later(1000);
        missed_events(self.storage.reader(), &webhook, &period, after, limit)
            .await
            .unwrap()
    }

    /// Enqueues the missed events of a page.
    async fn enqueue(&self, id: WebhookId, page: &MissedPage) {
        let (webhook, missed) = (self.row(id).await, page.missed.clone());
        self.storage
            .write(move |transaction| async move {
                let webhook = Webhook::try_from(webhook)?;
                enqueue_missed(&transaction, &webhook, &missed, NOW).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
    }

    async fn number_events(&self) {
        self.storage
            .write(move |transaction| async move {
                events::assign_numbers(&transaction, 1000, events::QueueHeads::BEGINNING).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
    }
}

/// Numbers are assigned later, much later if the sequencer's core has just crashed.
#[tokio::test]
async fn a_missed_event_is_found_before_it_has_a_number_and_only_once() {
    let (store, webhook_id) = TestStore::with_a_webhook().await;
    store.complete(1, NOW).await;
    store.set_enabled(webhook_id, false, NOW).await;
    assert_eq!(store.complete(2, later(1)).await, 0);
    store.number_events().await;
    assert_eq!(store.complete(3, later(2)).await, 0);
    store.set_enabled(webhook_id, true, later(3)).await;

    let numbered = store.missed_events(webhook_id, 0, 100).await;
    assert_eq!((numbered.missed.len(), numbered.next_after), (2, Some(6)));
    store.enqueue(webhook_id, &numbered).await;
    // The events without a number, two at a time: all come after the last number.
    for (count, last) in [(2, Some(6)), (1, None), (0, None)] {
        let page = store.missed_events(webhook_id, 6, 2).await;
        assert_eq!((page.missed.len(), page.next_after), (count, last));
        store.enqueue(webhook_id, &page).await;
    }

    store.number_events().await;
    for after in [0, 6] {
        let page = store.missed_events(webhook_id, after, 100).await;
        assert_eq!(
            (page.missed.len(), page.next_after),
            (0, Some(12)),
            "{after}"
        );
    }
    assert_eq!(store.count("pending").await, 5);
    assert_eq!(store.count("cancelled").await, 1);
}
