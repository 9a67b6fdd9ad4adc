//! What operators see of webhooks, and shops while a part is not there.

use std::collections::BTreeSet;

use crate::{
    ONE_AT_A_TIME, all_in_one::AllInOne, cluster::Cluster, receiver::Receiver,
    webhook_receiver::WebhookReceiver,
};

/// "The operator is told (event `webhook.disabled` on the internal stream, log, metric)".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_the_platform_disables_is_in_its_log() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(410);
    for _ in 0..2 {
        shop.subscribe(receiver.url()).await;
    }
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;

    let webhooks = shop.get("/api/webhooks").await.unwrap();
    for webhook in webhooks["hydra:member"].as_array().unwrap() {
        let id = webhook["id"].as_str().unwrap();
        let line = platform.server.printed(&format!("webhook.id={id}")).await;
        for part in [
            " WARN ",
            "a webhook is disabled",
            "store.id=",
            "its receiver says that it is gone",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }
    assert!(platform.server.terminate().await.success());
}

/// Neither is what can't be sent sent, nor can that be written: others are told all the same, at
/// once, and not when a lease has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_cannot_be_read_holds_up_nobody_else() {
    const OTHERS: usize = 8;

    let _alone = ONE_AT_A_TIME.lock().await;
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    shop.subscribe("http://127.0.0.1:9/broken").await;
    for _ in 0..OTHERS {
        shop.subscribe(receiver.url()).await;
    }
    platform.sql("UPDATE webhooks SET sealed_secret = x'00' WHERE url LIKE '%/broken'");
    platform.sql(
        "CREATE TRIGGER refuse BEFORE UPDATE ON notifications
         WHEN NEW.attempts > OLD.attempts AND EXISTS (
             SELECT 1 FROM webhooks WHERE id = NEW.webhook_id AND url LIKE '%/broken'
         )
         BEGIN SELECT RAISE(ABORT, 'refused'); END",
    );
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;

    let mut ids = BTreeSet::new();
    for _ in 0..OTHERS {
        let told = receiver.next_notification().await;
        ids.insert(told.header("webhook-id").to_owned());
    }

    assert_eq!(ids.len(), OTHERS);
    platform.server.printed("could not be recorded").await;
    assert!(receiver.so_far().await.is_empty());
    assert!(platform.server.terminate().await.success());
}

/// "No dispatcher has a stream to the core asked: 503 with `Retry-After`".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_nobody_can_try_now_can_be_tried_later() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let receiver = Receiver::start().await;
    shop.subscribe(receiver.url()).await;
    let webhooks = shop.get("/api/webhooks").await.unwrap();
    let webhook = webhooks["hydra:member"][0]["@id"].as_str().unwrap();
    for dispatcher in &mut cluster.dispatchers {
        assert!(dispatcher.terminate().await.success());
    }

    let refused = shop.test_webhook(webhook).await.unwrap_err();

    assert!(refused.is_to_come_again(), "{refused}");
    assert_eq!(receiver.so_far().total, 0);
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.start().await;
    }
    let test = shop.test_webhook(webhook).await.unwrap();
    assert_eq!(test["delivered"], true);
    assert_eq!(receiver.so_far().total, 1);
}
