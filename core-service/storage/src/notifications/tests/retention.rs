//! Retention removes finished notifications only.

use super::*;

impl TestStore {
    async fn remove(&self, before: Timestamp, limit: u64) -> u64 {
        self.storage
            .write(move |transaction| async move { remove_finished(&transaction, before, limit).await })
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn old_finished_notifications_are_removed_with_their_attempts_in_batches() {
    let (store, _) = TestStore::with_a_webhook().await;
    store.make_healthy(NOW).await;
    store.complete(5, NOW).await;
    let leased = store.claim(NOW).await;
    store
        .report_all(&leased[..3], &Outcome::Delivered, later(10))
        .await;
    store
        .report_all(&leased[3..4], &server_error(), later(10))
        .await;

    assert_eq!(store.remove(NOW, 10).await, 0);
    let removed = store.remove(later(10), 10).await;
    assert_eq!(removed, 1, "the notification that `make_healthy` delivered");
    assert_eq!(store.remove(later(11), 2).await, 2);
    assert_eq!(store.remove(later(11), 2).await, 1);
    assert_eq!(store.remove(later(1_000_000), 2).await, 0);

    assert_eq!(store.count("delivered").await, 0);
    let (pending, leased) = (store.count("pending").await, store.count("leased").await);
    assert_eq!((pending, leased), (1, 1), "unfinished notifications stay");
    let attempts = attempt::Entity::find().count(store.storage.reader()).await;
    assert_eq!(attempts.unwrap(), 1, "the attempt of the pending one stays");
}
