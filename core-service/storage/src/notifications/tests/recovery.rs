//! What a webhook missed is found, whether or not it is numbered yet.

use super::*;
use crate::{
    events,
    webhook_notifications::{Page, missed, owe_missed},
};

impl Shop {
    /// What a look at the log finds behind a number, of a long time.
    async fn missed(&self, id: WebhookId, behind: i64, most: u64) -> Page {
        let webhook = Webhook::try_from(self.row(id).await).unwrap();
        let period = (later(-1000), later(1000));
        missed(self.storage.reader(), &webhook, period, behind, most)
            .await
            .unwrap()
    }

    /// Owes what was found.
    async fn owe(&self, id: WebhookId, page: &Page) {
        let (webhook, missed) = (self.row(id).await, page.missed.clone());
        self.storage
            .write(move |transaction| {
                let (webhook, missed) = (webhook.clone(), missed.clone());
                Box::pin(async move {
                    let webhook = Webhook::try_from(webhook)?;
                    owe_missed(transaction, &webhook, &missed, NOW).await?;
                    Ok::<_, Error>(())
                })
            })
            .await
            .unwrap();
    }

    async fn number_events(&self) {
        self.storage
            .write(|transaction| {
                Box::pin(async move {
                    events::number(transaction, (Uuid::nil(), LONG), 1000).await?;
                    Ok::<_, Error>(())
                })
            })
            .await
            .unwrap();
    }
}

/// Numbers come later, much later if the core that gives them has just died.
#[tokio::test]
async fn what_was_missed_is_found_before_it_has_a_number_and_only_once() {
    let (shop, webhook_id) = Shop::with_a_webhook().await;
    shop.complete(1, NOW).await;
    shop.set_enabled(webhook_id, false, NOW).await;
    assert_eq!(shop.complete(2, later(1)).await, 0);
    shop.number_events().await;
    assert_eq!(shop.complete(3, later(2)).await, 0);
    shop.set_enabled(webhook_id, true, later(3)).await;

    let numbered = shop.missed(webhook_id, 0, 100).await;
    assert_eq!((numbered.missed.len(), numbered.last), (2, Some(6)));
    shop.owe(webhook_id, &numbered).await;
    // A few at a time, behind the same number.
    for (count, last) in [(2, Some(6)), (1, None), (0, None)] {
        let page = shop.missed(webhook_id, 6, 2).await;
        assert_eq!((page.missed.len(), page.last), (count, last));
        shop.owe(webhook_id, &page).await;
    }

    shop.number_events().await;
    for behind in [0, 6] {
        let page = shop.missed(webhook_id, behind, 100).await;
        assert_eq!((page.missed.len(), page.last), (0, Some(12)), "{behind}");
    }
    assert_eq!(shop.count("pending").await, 5);
    assert_eq!(shop.count("dropped").await, 1);
}
