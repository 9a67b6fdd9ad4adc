//! What has ended is removed after a while, and nothing else.

use super::*;

impl Shop {
    async fn remove(&self, before: Timestamp, most: u64) -> u64 {
        self.storage
            .write(move |transaction| {
                Box::pin(async move { remove_finished(transaction, before, most).await })
            })
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn what_ended_long_ago_is_removed_with_its_attempts_a_few_at_a_time() {
    let (shop, _) = Shop::with_a_webhook().await;
    shop.has_answered(NOW).await;
    shop.complete(5, NOW).await;
    let held = shop.claim(NOW).await;
    shop.report_all(&held[..3], &Outcome::Delivered, later(10))
        .await;
    shop.report_all(&held[3..4], &refused(), later(10)).await;

    assert_eq!(shop.remove(NOW, 10).await, 0);
    assert_eq!(shop.remove(later(10), 10).await, 1);
    assert_eq!(shop.remove(later(11), 2).await, 2);
    assert_eq!(shop.remove(later(11), 2).await, 1);
    assert_eq!(shop.remove(later(1_000_000), 2).await, 0);

    assert_eq!(shop.count("delivered").await, 0);
    let (pending, leased) = (shop.count("pending").await, shop.count("leased").await);
    assert_eq!((pending, leased), (1, 1), "what is owed stays");
    let attempts = attempt::Entity::find().count(shop.storage.reader()).await;
    assert_eq!(attempts.unwrap(), 1, "as does what was tried");
}
